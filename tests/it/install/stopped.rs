//! A kill before every single file change of install, upgrade, rollback and uninstall.

use super::*;

const STOP: &str = "ZCODE_MAIL_TEST_STOP_BEFORE_STEP";
const BEFORE: &[u8] = b"{\n  // mine\n  \"theme\": \"dark\"\n}\n";

/// Runs `args` on a fresh place from `prepare`, stopped before step 1, 2, ... until it is not
/// stopped any more, and lets `check` look at what each stop left. Returns the number of steps.
fn at_every_step(
    prepare: impl Fn() -> Place,
    args: &[&str],
    check: impl Fn(&Place, usize),
) -> usize {
    for step in 1.. {
        let place = prepare();
        let out = place.run_with(args, &[(STOP, &step.to_string())]);
        if out.status.success() {
            return step - 1;
        }
        assert_eq!(out.status.code(), None, "killed, not refused: {out:?}");
        check(&place, step);
    }
    unreachable!("the steps of a command are not endless")
}

/// What ZCode may see at any moment: a configuration from before or after, and behind its entry
/// one complete plugin.
#[track_caller]
fn whole(place: &Place, allowed: &[&str]) {
    if place.current().symlink_metadata().is_ok() {
        let dialect = place.dialect();
        assert!(allowed.contains(&dialect.as_str()), "{dialect}");
    }
    if place.named() {
        assert!(place.current().exists(), "the configuration names what is not there");
    } else {
        assert_eq!(place.bytes().unwrap(), BEFORE);
    }
}

/// Nothing of ours is left, but for the empty directories above our own: a run that ended right
/// after making them could not remember that they are its own.
#[track_caller]
fn assert_bare(place: &Place, step: usize) {
    let home = place.dir.path().join("home");
    let prefix = place.dir.path().join("pre fix");
    let left: Vec<PathBuf> =
        place.tree().into_iter().map(|(path, ..)| path).filter(|p| !p.starts_with(&home)).collect();
    assert!(left.iter().all(|p| *p == prefix || *p == prefix.join("plugins")), "{step}: {left:?}");
    assert_eq!(fs::read_dir(place.config.parent().unwrap()).unwrap().count(), 1, "step {step}");
}

#[test]
fn a_stopped_installation_is_invisible_or_complete_and_the_next_run_finishes_it() {
    let prepare = || Place::with(BEFORE);
    let clean = prepare();
    clean.ok(&["install", "--dialect", "both"]);
    let steps = at_every_step(prepare, &["install", "--dialect", "both"], |place, step| {
        whole(place, &["both"]);
        place.ok(&["install", "--dialect", "both"]);
        assert!(place.named());
        assert_eq!(place.dialect(), "both");
        assert_eq!(place.tree().len(), clean.tree().len(), "step {step} leaves something");
        place.ok(&["uninstall"]);
        assert_eq!(place.bytes().unwrap(), BEFORE, "step {step}");
        assert_bare(place, step);
    });
    assert!(steps > 20, "{steps}");
}

#[test]
fn a_stopped_upgrade_leads_to_the_old_or_the_new_plugin() {
    let prepare = || {
        let place = Place::with(BEFORE);
        place.ok(&["install", "--dialect", "both"]);
        place
    };
    let steps = at_every_step(prepare, &["install", "--dialect", "flat"], |place, step| {
        assert!(place.named());
        whole(place, &["both", "flat"]);
        place.ok(&["install", "--dialect", "flat"]);
        assert_eq!(place.dialect(), "flat");
        place.ok(&["uninstall"]);
        assert_eq!(place.bytes().unwrap(), BEFORE, "step {step}");
    });
    assert!(steps > 15, "{steps}");
}

#[test]
fn a_stopped_step_back_leads_to_the_old_or_the_new_plugin() {
    let prepare = || {
        let place = Place::with(BEFORE);
        place.ok(&["install", "--dialect", "both"]);
        place.ok(&["install", "--dialect", "flat"]);
        place
    };
    let steps = at_every_step(prepare, &["install", "--rollback"], |place, _| {
        assert!(place.named());
        whole(place, &["both", "flat"]);
        if place.dialect() == "flat" {
            place.ok(&["install", "--rollback"]);
        }
        assert_eq!(place.dialect(), "both");
    });
    assert_eq!(steps, 2);
}

#[test]
fn a_stopped_uninstallation_never_leaves_an_entry_without_a_plugin() {
    let prepare = || {
        let place = Place::with(BEFORE);
        place.ok(&["install", "--dialect", "both"]);
        place
    };
    let steps = at_every_step(prepare, &["uninstall"], |place, step| {
        whole(place, &["both"]);
        let out = place.run(&["uninstall"]);
        let stderr = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(out.status.success() || stderr.contains("nothing is installed"), "{stderr}");
        assert_eq!(place.bytes().unwrap(), BEFORE, "step {step}");
        // An installation that ended in the middle of taking itself away is swept by the next one.
        place.ok(&["install", "--dialect", "both"]);
        place.ok(&["uninstall"]);
        assert_bare(place, step);
    });
    assert!(steps >= 5, "{steps}");
}

#[test]
fn only_one_installation_works_at_a_time() {
    let place = Place::with(BEFORE);
    place.ok(&["install"]);
    let mark = fs::File::open(place.root().join(".zcode-mail-bridge")).unwrap();
    mark.lock().unwrap();
    assert!(place.refused(&["install"]).contains("another zcode-mail is at work"));
    assert!(place.refused(&["uninstall"]).contains("another zcode-mail is at work"));
    drop(mark);
    place.ok(&["uninstall"]);
}
