//! How logs are named, which lists are taken, and who is refused before anything is asked.

use rustix::process::Signal;
use tamis_testbed::ctlog::{World, WorldOptions};

use super::{Following, assert_read, follow, follow_list, standing, world};
use crate::run::{Home, Run, text};

/// A log of each kind.
const LOGS: [&str; 3] = [
    "alpha,entries=700",
    "beta,kind=static,entries=600,operator=Beta",
    "gamma,kind=hybrid,entries=300",
];

/// Google's, for logs that are asked nothing.
const OTHER_KEY: &str = "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEfahLEimAoz2t01p3uMziiLOl/fHTDM0YDOhBRuiBARsV4UvxG2LdNgoIGLrtCzWE0J5APC2em4JlvR8EEEFMoA==";

#[test]
fn a_list_in_a_file_is_followed_to_the_end_and_its_names_are_found() {
    for other in ["log_list.sig", "log_list.json.sig"] {
        let home = Home::new();
        let world = world(&home, &LOGS);
        // Either name of the signature does.
        std::fs::remove_file(home.path("list").join(other)).unwrap();
        let run = Run::of(&mut follow_list(
            &home,
            &["--until-caught-up", "--format", "json"],
        ))
        .code(0);
        assert_eq!(run.json().as_array().unwrap().len(), LOGS.len());
        assert!(run.err.contains("1600 entries read"), "{}", run.err);
        assert_read(&home, &world.logs());
        for log in world.logs() {
            let names = log.expected().flat_map(|(_, _, names)| names);
            let names: Vec<String> = names.filter(|name| !name.starts_with("*.")).take(3).collect();
            assert_eq!(names.len(), 3, "{}", log.name());
            for name in names {
                let rows = home.ask(&["names", &name]);
                assert_eq!(text(&rows[0], "name"), name);
                assert!(!home.ask(&["search", "--exact", &name]).is_empty(), "{name}");
            }
        }
    }
}

#[test]
fn a_list_is_fetched_and_its_key_may_stand_on_the_command_line() {
    let home = Home::new();
    let world = world(&home, &LOGS);
    let (url, key) = (world.list_url(), world.list_key_pem());
    let args = ["--log-list", &url, "--log-list-key", &key, "--until-caught-up"];
    Run::of(&mut follow(&home, &args)).code(0);
    assert_read(&home, &world.logs());
}

#[test]
fn logs_are_named_by_hand_and_what_they_speak_is_found_out() {
    let home = Home::new();
    let world = world(&home, &LOGS);
    let mut command = follow(&home, &["--until-caught-up"]);
    for log in world.logs() {
        command.args(["--log", &log.url(), "--key", &log.key_base64()]);
    }
    Run::of(&mut command).code(0);
    assert_read(&home, &world.logs());
    let apis: Vec<String> = standing(&home)
        .values()
        .map(|log| text(log, "api").to_owned())
        .collect();
    assert_eq!(apis, ["rfc6962", "static-ct-api", "rfc6962+tiles"]);
}

#[test]
fn a_log_under_another_key_is_told_and_nothing_of_it_is_read() {
    for name in ["alpha", "beta"] {
        let home = Home::new();
        let world = world(&home, &LOGS);
        let (log, other) = (world.log(name), world.log("gamma"));
        let mut following = Following::start(&mut follow(
            &home,
            &["--log", &log.url(), "--key", &other.key_base64()],
        ));
        // A note names its key, so that one of another key is that of another log; a head of RFC 6962 does not.
        let told = match name {
            "alpha" => "a head is not signed by the key of the log",
            _ => "no signature is by the key of the log",
        };
        following.wait(&home, "the log to be caught", |logs| {
            logs.values()
                .any(|log| log["status"] == "waiting" && !log["error"].is_null())
        });
        let table = home.ct(&["logs"]).code(0);
        assert!(table.err.contains(told), "{}", table.err);
        assert!(table.out.contains("waiting"), "{}", table.out);
        following.end(Signal::TERM).0.code(0);
        let status = &standing(&home)[&log.url()];
        assert_eq!([&status["read"], &status["tree_size"]], [0, 0], "{status:#}");
    }
}

#[test]
fn an_unsigned_list_is_taken_only_by_who_says_so() {
    let home = Home::new();
    let world = world(&home, &LOGS);
    let list = home.path("list/log_list.json");
    let list = list.to_str().unwrap();
    let unkeyed = ["--log-list", list, "--until-caught-up"];
    Run::of(&mut follow(&home, &unkeyed)).says(2, &["no log list", "signature", "--log-list-key"]);
    for name in ["log_list.sig", "log_list.json.sig"] {
        std::fs::remove_file(home.path("list").join(name)).unwrap();
    }
    Run::of(&mut follow_list(&home, &["--until-caught-up"]))
        .says(2, &["has no signature beside it", "--allow-unsigned-list"]);
    Run::of(&mut follow(
        &home,
        &["--log-list", list, "--allow-unsigned-list", "--until-caught-up"],
    ))
    .code(0);
    assert_read(&home, &world.logs());
}

#[test]
fn what_is_no_list_is_told_with_what_to_do() {
    let home = Home::new();
    let absent = home.path("absent.json");
    let absent = absent.to_str().unwrap();
    Run::of(&mut follow(
        &home,
        &["--log-list", absent, "--allow-unsigned-list"],
    ))
    .says(2, &["no log list", absent, "; "]);
    let other = home.file("other.json", b"<html>");
    let other = other.to_str().unwrap();
    Run::of(&mut follow(
        &home,
        &["--log-list", other, "--allow-unsigned-list"],
    ))
    .says(2, &["no log list", "; "]);
}

#[test]
fn logs_and_keys_come_in_pairs() {
    let home = Home::new();
    let world = world(&home, &LOGS);
    let alpha = world.log("alpha");
    Run::of(&mut follow(&home, &["--log", &alpha.url()])).says(2, &["--key", "1 and 0"]);
    let key = alpha.key_base64();
    Run::of(&mut follow(
        &home,
        &["--log", &alpha.url(), "--key", &key, "--key", &key],
    ))
    .says(2, &["--key", "1 and 2"]);
    assert_eq!(alpha.report().total(), 0);
    assert!(!home.data().exists(), "who is refused leaves no folder");
}

#[test]
fn nothing_public_is_asked_without_a_contact() {
    let home = Home::new();
    let world = world(&home, &LOGS);
    let alpha = world.log("alpha");
    let (url, key) = (alpha.url(), alpha.key_base64());
    let mut args = vec!["--log", &url, "--key", &key];
    args.extend(["--log", "https://ct.example.org/", "--key", OTHER_KEY]);
    Run::of(&mut follow(&home, &args)).says(2, &["https://ct.example.org/", "--contact"]);
    // Without arguments it would be Google's list.
    Run::of(&mut follow(&home, &[])).says(2, &["https://www.gstatic.com/", "--contact"]);
    assert_eq!(alpha.report().total(), 0);
    assert!(!home.data().exists(), "who is refused leaves no folder");
}

#[test]
fn public_logs_of_a_list_at_hand_need_a_contact_too() {
    let home = Home::new();
    let options = WorldOptions {
        logs: LOGS
            .map(|log| tamis_testbed::ctlog::LogOptions::parse(log).unwrap())
            .into(),
        base_url: Some("https://ct.tamis-logs.arpa".to_owned()),
        folder: Some(home.path("list")),
        ..WorldOptions::default()
    };
    let world = World::start(options).unwrap();
    Run::of(&mut follow_list(&home, &["--until-caught-up"]))
        .says(2, &["https://ct.tamis-logs.arpa/", "--contact"]);
    assert!(world.logs().iter().all(|log| log.report().total() == 0));
}

#[test]
fn a_second_follow_of_a_folder_is_refused_and_told_the_first() {
    let home = Home::new();
    let world = world(&home, &LOGS);
    let mut first = Following::start(&mut follow_list(&home, &[]));
    let holder = first.child.id().to_string();
    first.wait(&home, "the first to read", |logs| {
        logs.len() == 3 && logs.values().all(|log| log["backlog"] == 0 && log["read"] != 0)
    });
    Run::of(&mut follow_list(&home, &["--until-caught-up"])).says(2, &[&holder, "LOCK"]);
    first.end(Signal::INT).0.code(0);
    assert_read(&home, &world.logs());
}
