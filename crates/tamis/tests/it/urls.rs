//! `tamis urls …`: one record a line, in order, whatever the line holds.

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::run::{Run, tamis, testdata};

fn fed(args: &[&str], input: &[u8]) -> Run {
    Run::fed(&mut tamis(&[&["urls"], args].concat()), input)
}

fn rows(run: &Run) -> Vec<Value> {
    run.out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn rule_set(name: &str) -> String {
    testdata(&format!("urls/rules/{name}.json")).display().to_string()
}

#[test]
fn a_record_for_each_line_that_is_not_empty() {
    let input = b"HTTP://E.com:80/%7ea?b&a#f\n\n \nhttp://u:P@e.com\r\nfoo\nhttp://e.com/\xe9\nhttp://\xff/\nhttp://e.com/\x1b[31m";
    let run = fed(&["canon"], input).code(1);
    let rows = rows(&run);
    let inputs: Vec<&str> = rows.iter().map(|row| row["input"].as_str().unwrap()).collect();
    assert_eq!(
        inputs,
        [
            "HTTP://E.com:80/%7ea?b&a#f",
            " ",
            "http://u:P@e.com\r",
            "foo",
            "http://e.com/%E9",
            "http://%FF/",
            "http://e.com/\u{1b}[31m",
        ]
    );
    assert!(!run.out.contains('\u{1b}'), "a terminal would obey");
    assert_eq!(
        rows[0],
        json!({
            "input": "HTTP://E.com:80/%7ea?b&a#f",
            "key": "http://e.com/~a?a&b",
            "fetch_url": "http://e.com/%7ea?b&a#f",
            "rules": ["scheme-case", "host-case", "default-port", "unreserved", "fragment", "sort-parameters"],
            "error": null,
        })
    );
    assert_eq!(rows[2]["key"], "http://e.com/");
    assert_eq!(rows[2]["fetch_url"], "http://u:P@e.com/");
    assert_eq!(rows[3]["key"], Value::Null);
    assert!(rows[3]["error"].as_str().unwrap().contains("no scheme"));
    assert_eq!(rows[4]["key"], "http://e.com/%E9");
    assert!(rows[5]["error"].as_str().unwrap().contains("host"));
    fed(&["canon"], b"http://e.com/\n").code(0);
    fed(&["canon"], b"").code(0);
}

#[test]
fn keys_as_tsv_have_a_fixed_shape() {
    let run = fed(&["canon", "--format", "tsv"], b"http://e.com/?b&a\nx\ty\n").code(1);
    let lines: Vec<Vec<&str>> = run.out.lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!(
        lines[0],
        [
            "http://e.com/?b&a",
            "http://e.com/?a&b",
            "http://e.com/?b&a",
            "sort-parameters",
            ""
        ]
    );
    assert_eq!(lines[1][..4], [r"x\x09y", "", "", ""]);
    assert_eq!(lines[1].len(), 5);
}

#[test]
fn profiles_and_rules_switched_on() {
    let key = |args: &[&str], url: &str| {
        let run = fed(&[&["canon"], args].concat(), url.as_bytes());
        rows(&run)[0]["key"].as_str().map(str::to_owned)
    };
    let url = "http://www.e.com/x/?utm_source=a&b=&A=%7e#f";
    assert_eq!(
        key(&["--profile", "strict"], url).as_deref(),
        Some("http://www.e.com/x/?utm_source=a&b=&A=~#f")
    );
    assert_eq!(
        key(&[], url).as_deref(),
        Some("http://www.e.com/x/?A=~&b=&utm_source=a")
    );
    assert_eq!(
        key(&["--profile", "classic"], url).as_deref(),
        Some("http://www.e.com/x?A=~")
    );
    assert_eq!(
        key(
            &["--profile", "classic", "--with", "www", "--with", "scheme-fold"],
            url
        )
        .as_deref(),
        Some("https://e.com/x?A=~")
    );
    assert_eq!(
        key(&["--profile", "surt"], url).as_deref(),
        Some("com,e)/x?a=~&b=&utm_source=a")
    );
    assert_eq!(
        key(&["--profile", "w3lib"], url).as_deref(),
        Some("http://www.e.com/x/?A=~&b=&utm_source=a")
    );
    let tracking = rule_set("tracking");
    let run = fed(
        &["canon", "--rules", &tracking],
        b"http://e.com/?utm_source=a&b\n",
    )
    .code(0);
    assert_eq!(rows(&run)[0]["key"], "http://e.com/?b");
    assert_eq!(
        rows(&run)[0]["rules"],
        json!(["sort-parameters", "drop-parameters"])
    );
    fed(&["canon", "--profile", "none"], b"").says(2, &["no profile is called", "default"]);
    fed(&["canon", "--with", "userinfo"], b"").says(2, &["trailing-slash"]);
    fed(&["canon", "--rules", "nowhere.json"], b"").says(2, &["nowhere.json", "check the path"]);
    fed(&["canon", "--profile", "surt", "--rules", &tracking], b"").says(2, &["surt", "use default"]);
    fed(&["canon", "nowhere.txt"], b"").says(2, &["nowhere.txt"]);
}

#[test]
fn fingerprints_traces_and_expressions() {
    let secret = "000102030405060708090a0b0c0d0e0f";
    let args = ["canon", "--fingerprint", secret, "--trace", "--safe-browsing"];
    let run = fed(&args, b"http://[2001:DB8::1]:80/\nx\n").code(1);
    let rows = rows(&run);
    // The same as in the shared vectors.
    assert_eq!(rows[0]["fingerprint"], "e89bd3ec942e53c633923d7428075fa6");
    assert_eq!(rows[0]["safe_browsing"], json!(["[2001:db8::1]/"]));
    assert_eq!(
        rows[0]["steps"][0],
        json!({
            "rule": "ip-address", "class": "A",
            "before": "http://[2001:DB8::1]:80/", "after": "http://[2001:db8::1]/",
        })
    );
    assert_eq!(rows[1]["fingerprint"], Value::Null);
    let run = fed(
        &["canon", "--fingerprint", secret, "--bits", "64"],
        b"http://e.com/\nhttp://f.com/\n",
    );
    let run = run.says(0, &["2 keys as 64 bits", "expected to collide"]);
    assert_eq!(self::rows(&run)[0]["fingerprint"].as_str().unwrap().len(), 16);
    fed(&["canon", "--fingerprint", "12"], b"").says(2, &["32 hexadecimal digits"]);
}

#[test]
fn order_is_kept_over_all_cores_and_sizes() {
    let mut input = Vec::new();
    for number in 0..40_000 {
        input.extend_from_slice(format!("http://e.com/{number}?{}\n", "x".repeat(number % 97)).as_bytes());
    }
    let long = [
        b"http://e.com/".as_slice(),
        &vec![b'a'; 3 << 20],
        b"\nhttp://e.com/last",
    ]
    .concat();
    input.extend_from_slice(&long);
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("urls.txt");
    std::fs::write(&file, &input).unwrap();
    let run = Run::of(&mut tamis(&["urls", "canon", file.to_str().unwrap()])).code(1);
    let lines: Vec<&str> = run.out.lines().collect();
    assert_eq!(lines.len(), 40_002);
    for (number, line) in lines.iter().take(40_000).enumerate() {
        assert!(
            line.starts_with(&format!("{{\"input\":\"http://e.com/{number}?")),
            "{number}: {line}"
        );
    }
    let long: Value = serde_json::from_str(lines[40_000]).unwrap();
    let error = long["error"].as_str().unwrap();
    assert!(error.contains(&format!("{} bytes", (3 << 20) + 13)), "{error}");
    assert!(long["input"].as_str().unwrap().len() <= 4096);
    assert!(lines[40_001].contains("http://e.com/last"));
}

#[test]
fn parts_of_a_url() {
    let run = fed(
        &["parse", "--base", "https://a.co.uk/x/y?q"],
        b"HTTP://u:p@WWW.Example.co.uk:81/a/../b?c#d\n../z\n//co.uk/\nmailto:x\nhttp://127.1/?\nhttp://a:b/\n",
    )
    .code(1);
    let rows = rows(&run);
    assert_eq!(
        rows[0],
        json!({
            "input": "HTTP://u:p@WWW.Example.co.uk:81/a/../b?c#d",
            "href": "http://u:p@www.example.co.uk:81/b?c#d",
            "scheme": "http", "username": "u", "password": "p", "host": "www.example.co.uk", "port": 81,
            "path": "/b", "query": "c", "fragment": "d", "registrable_domain": "example.co.uk", "error": null,
        })
    );
    assert_eq!(rows[1]["href"], "https://a.co.uk/z");
    assert_eq!(rows[1]["query"], Value::Null);
    assert_eq!(rows[2]["host"], "co.uk");
    assert_eq!(rows[2]["registrable_domain"], Value::Null);
    assert_eq!(rows[3]["host"], Value::Null);
    assert_eq!(rows[3]["path"], "x");
    assert_eq!(rows[4]["host"], "127.0.0.1");
    assert_eq!(rows[4]["query"], "");
    assert_eq!(rows[4]["registrable_domain"], Value::Null);
    assert!(rows[5]["error"].as_str().unwrap().contains("port"));
    let run = fed(&["parse", "--format", "tsv"], b"http://e.com/?a\n").code(0);
    assert_eq!(run.out, "http://e.com/?a\thttp\t\t\te.com\t\t/\ta\t\te.com\t\n");
    fed(&["parse", "--base", "x"], b"").says(2, &["the base", "https://"]);
}

#[test]
fn two_urls_explained() {
    let explain = |args: &[&str]| {
        let run = fed(&[&["explain", "--format", "json"], args].concat(), b"").code(0);
        serde_json::from_str::<Value>(&run.out).unwrap()
    };
    let names = |list: &Value| -> Vec<String> {
        let rules = list.as_array().unwrap().iter();
        rules
            .map(|rule| rule["rule"].as_str().unwrap().to_owned())
            .collect()
    };
    let same = explain(&["http://e.com/?b=1&a=%20", "http://e.com/?a=+&b=1#x"]);
    assert_eq!(same["same"], true);
    assert_eq!(
        names(&same["decided_by"]),
        ["fragment", "plus", "sort-parameters"]
    );
    assert_eq!(same["same_under"], json!(["default", "classic", "w3lib"]));
    let apart = explain(&["http://www.e.com/a", "http://e.com/a"]);
    assert_eq!(apart["same"], false);
    assert_eq!(apart["differ_in"], json!(["host"]));
    assert_eq!(names(&apart["would_meet_by"]), ["www"]);
    let set = rule_set("tracking");
    let dropped = explain(&["--rules", &set, "http://e.com/?gclid=1", "http://e.com/"]);
    assert_eq!(names(&dropped["decided_by"]), ["drop-parameters"]);
    assert_eq!(dropped["id"], "default/1 tracking@1");
    fed(&["explain", "http://e.com/", "nothing"], b"").says(1, &["nothing has no key", "no scheme"]);
}

#[test]
fn rule_sets_are_checked_made_and_tried() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let tracking = rule_set("tracking");
    let run = fed(&["rules", "check", "--format", "json", &tracking], b"").code(0);
    let checked: Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(checked[0]["id"], "tracking@1");
    std::fs::write(
        path("bad.json"),
        r#"{"tamis_url_rules":1,"name":"n","version":"1","names":["ref"]}"#,
    )
    .unwrap();
    let run = fed(&["rules", "check", "--format", "json", &path("bad.json")], b"").code(1);
    assert!(run.out.contains("everywhere"), "{}", run.out);
    fed(&["canon", "--rules", &path("bad.json")], b"").says(2, &["bad.json", "everywhere"]);
    let list = b"$removeparam=gclid\n||e.com^$removeparam=ref\n$removeparam=id\n";
    let args = ["rules", "import", "--from", "adguard", "--set-version", "7", "-"];
    let run = fed(&args, list).says(0, &["left out: id", "2 rules taken, 1 left out"]);
    std::fs::write(path("made.json"), &run.out).unwrap();
    std::fs::write(
        path("vectors.jsonl"),
        "{\"input\":\"http://e.com/?ref=1&gclid=2\",\"key\":\"http://e.com/\"}\n\n{\"input\":\"x\",\"key\":null}\n",
    )
    .unwrap();
    let (made, vectors) = (path("made.json"), path("vectors.jsonl"));
    fed(&["rules", "test", "--rules", &made, &vectors], b"").says(0, &["2 tried, 0 with another key"]);
    let run = fed(&["rules", "test", "--format", "ndjson", &vectors], b"").says(1, &["1 with another key"]);
    assert_eq!(rows(&run)[0]["got"], "http://e.com/?gclid=2&ref=1");
    fed(
        &["rules", "import", "--from", "brave", "--set-version", "1", "-"],
        b"x",
    )
    .says(2, &["no list of brave"]);
    fed(&["rules", "test", &made], b"").says(2, &["made.json:1"]);
}

#[test]
fn whoever_stops_reading_is_no_failure() {
    use std::io::Read;
    use std::process::Stdio;
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("urls.txt");
    std::fs::write(&file, "http://e.com/\n".repeat(500_000)).unwrap();
    let mut command = tamis(&["urls", "canon", file.to_str().unwrap()]);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut head = [0; 64];
    child.stdout.take().unwrap().read_exact(&mut head).unwrap();
    let run = Run::ended("canon | head".to_owned(), child.wait_with_output().unwrap()).code(0);
    assert_eq!(run.err, "");
}
