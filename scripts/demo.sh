#!/usr/bin/env bash
# Imports the real log entries of testdata into a fresh index and searches it; then follows small simulated
# logs live for a few seconds.
#
# TAMIS names a ready binary, with tamis-testbed beside it (CI uses those its tests built); without it,
# releases are built.
set -euo pipefail
cd "$(dirname "$0")/.."

domain=${1:-car-hotissue.com}
data=tamis-data/demo
followed=tamis-data/demo-logs
if [ -z "${TAMIS:-}" ]; then
  echo "building (a few minutes the first time)"
  cargo build --release -p tamis -p tamis-testbed
  TAMIS=${CARGO_TARGET_DIR:-target}/release/tamis
fi
TESTBED=$(dirname "$TAMIS")/tamis-testbed

work=$(mktemp -d)
logs_pid=
follow_pid=
# However this ends, no process stays: following first, so that it is not told of logs that vanish.
end() {
  local status=$? pid
  for pid in $follow_pid $logs_pid; do
    kill -TERM "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
  done
  case $status in
    0 | 130 | 143) ;;
    *) cat "$work"/*.err >&2 2>/dev/null || true ;;
  esac
  rm -rf "$work"
}
trap end EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

rm -rf "$data" "$followed"
mkdir -p "$data"
echo
echo "importing 40 entries of two production logs and 256 of a staging log"
"$TAMIS" ct import --data "$data" testdata/ct/rfc6962/live_ct.json
"$TAMIS" ct import --data "$data" --log navigli2025h2 --start 0 testdata/ct/rfc6962/navigli2025h2_get-entries.json.gz
echo
echo "\$ tamis ct names $domain"
"$TAMIS" ct names --data "$data" "$domain"

# Four logs of both kinds: the same real entries, then generated ones, and new ones as we read. One of them
# serves a wrong bit.
"$TESTBED" ctlog --dir "$work/list" \
  --entries testdata/ct/rfc6962/live_ct.json testdata/ct/rfc6962/navigli2025h2_get-entries.json.gz \
  --log alpha,operator=Alpha,entries=4000,rate=40 \
  --log beta,kind=static,operator=Beta,entries=4000,rate=40 \
  --log gamma,kind=hybrid,operator=Gamma,entries=2000,rate=10 \
  --log delta,operator=Delta,entries=1000 --fault delta=bit_flip,index=700 \
  --fault alpha=latency,ms=200 --fault beta=latency,ms=200 \
  >"$work/world.json" 2>"$work/world.err" &
logs_pid=$!
for _ in $(seq 100); do
  [ ! -s "$work/world.json" ] && kill -0 "$logs_pid" 2>/dev/null || break
  sleep 0.1
done
[ -s "$work/world.json" ] || { echo "the simulated logs did not start" >&2; exit 1; }

echo
echo "\$ tamis ct follow --log-list list/log_list.json --log-list-key list/log_list_key.pem"
"$TAMIS" ct follow --data "$followed" --log-list "$work/list/log_list.json" \
  --log-list-key "$work/list/log_list_key.pem" --poll-interval 1s --partial-delay 2s --disk-max 100 \
  >"$work/follow.out" 2>"$work/follow.err" &
follow_pid=$!
for wait in 2 2 4; do
  sleep "$wait"
  kill -0 "$follow_pid" || { echo "following ended early" >&2; exit 1; }
  echo
  echo "\$ tamis ct logs    # other processes look while it reads"
  "$TAMIS" ct logs --data "$followed" 2>"$work/logs.err"
done
fold -s -w 100 "$work/logs.err"
echo
echo "\$ tamis ct names --data $followed $domain    # found while it reads"
"$TAMIS" ct names --data "$followed" "$domain" | sed -n 1,3p
echo "…"

kill -TERM "$follow_pid"
wait "$follow_pid"
follow_pid=
grep '^tamis: .* read' "$work/follow.err"

cat <<TXT

The indexes are in $data and $followed. Go on with:
  $TAMIS ct search --data $data $domain
  $TAMIS ct stats --data $data
  $TAMIS ct names --data $data --format json gamen.net
  $TAMIS ct names --data $data jccsmatrei.top       (what a phishing kit looks like)
  $TAMIS ct logs  --data $followed --format json
  $TAMIS ct parse some-certificate.pem
TXT
