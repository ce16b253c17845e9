#!/usr/bin/env bash
# Imports the real log entries of testdata into a fresh index and searches it.
#
# TAMIS names a ready binary (CI uses the one its tests built); without it, a release is built.
set -euo pipefail
cd "$(dirname "$0")/.."

domain=${1:-car-hotissue.com}
data=tamis-data/demo
if [ -z "${TAMIS:-}" ]; then
  echo "building (a few minutes the first time)"
  cargo build --release -p tamis
  TAMIS=${CARGO_TARGET_DIR:-target}/release/tamis
fi

rm -rf "$data"
mkdir -p "$data"
echo
echo "importing 40 entries of two production logs and 256 of a staging log"
"$TAMIS" ct import --data "$data" testdata/ct/rfc6962/live_ct.json
"$TAMIS" ct import --data "$data" --log navigli2025h2 --start 0 testdata/ct/rfc6962/navigli2025h2_get-entries.json.gz
echo
echo "\$ tamis ct names $domain"
"$TAMIS" ct names --data "$data" "$domain"
cat <<TXT

The index is in $data. Go on with:
  $TAMIS ct search --data $data $domain
  $TAMIS ct stats --data $data
  $TAMIS ct names --data $data --format json gamen.net
  $TAMIS ct names --data $data jccsmatrei.top       (what a phishing kit looks like)
  $TAMIS ct parse some-certificate.pem
TXT
