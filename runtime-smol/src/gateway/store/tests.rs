use super::*;

fn open(folder: &Path) -> Store {
    Store::open(&folder.join("mail.db")).unwrap()
}

fn add(tx: &mut Tx<'_>, name: &str) -> Result<(), Failure> {
    tx.execute("INSERT INTO names (name, kind) VALUES (?1, 'user')", [name])?;
    Ok(())
}

fn names(store: &Store) -> Vec<String> {
    smol::block_on(store.read(|db| {
        let mut statement = db.prepare("SELECT name FROM names ORDER BY name")?;
        let rows = statement.query_map([], |row| row.get(0))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }))
    .unwrap()
}

#[test]
fn work_that_fails_or_panics_leaves_no_trace_and_does_not_end_the_writer() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    smol::block_on(async {
        store.write(|tx| add(tx, "kept")).await.unwrap();
        let failed = store
            .write(|tx| {
                add(tx, "dropped")?;
                Err::<(), _>(Failure::internal("on purpose"))
            })
            .await;
        assert_eq!(failed.unwrap_err().cause.as_deref(), Some("on purpose"));
        let panicked = store
            .write(|tx| {
                add(tx, "dropped")?;
                panic!("on purpose");
                #[expect(unreachable_code, reason = "gives the closure its type")]
                Ok(())
            })
            .await;
        assert!(panicked.is_err());
        store.write(|tx| add(tx, "kept too")).await.unwrap();
    });
    assert_eq!(names(&store), ["kept", "kept too"]);
}

#[test]
fn works_that_wait_together_share_a_commit_and_keep_their_own_results() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    smol::block_on(async {
        let works = (0..200).map(|number| {
            let store = store.clone();
            smol::spawn(async move {
                let result = store
                    .write(move |tx| {
                        add(tx, &format!("n{number:03}"))?;
                        if number % 3 == 0 { Err(Failure::internal("third")) } else { Ok(number) }
                    })
                    .await;
                assert_eq!(result.ok(), (number % 3 != 0).then_some(number));
            })
        });
        for work in works.collect::<Vec<_>>() {
            work.await;
        }
    });
    assert_eq!(names(&store).len(), 133);
}

#[test]
fn events_are_published_after_the_commit_in_id_order_and_only_of_work_that_stands() {
    let folder = tempfile::tempdir().unwrap();
    let hub = Arc::new(Hub::default());
    let store = Store::open_with(&folder.path().join("mail.db"), Arc::clone(&hub)).unwrap();
    let (cut, _was_cut) = async_channel::bounded(1);
    let stream = hub.subscribe("ann", cut).unwrap();
    smol::block_on(async {
        store.write(|tx| add(tx, "ann")).await.unwrap();
        for stands in [true, false, true] {
            let result = store
                .write(move |tx| {
                    tx.announce("ann", "new_mail", format!("{{\"stands\":{stands}}}"))?;
                    if stands { Ok(()) } else { Err(Failure::internal("on purpose")) }
                })
                .await;
            assert_eq!(result.is_ok(), stands);
        }
        let (first, second) = (stream.next().await.unwrap(), stream.next().await.unwrap());
        assert!(first.id < second.id);
        assert_eq!(&*second.data, "{\"stands\":true}");
        let stored: i64 = store
            .read(|db| Ok(db.query_row("SELECT count(*) FROM events", [], |row| row.get(0))?))
            .await
            .unwrap();
        assert_eq!(stored, 2);
    });
}

#[test]
fn event_ids_are_never_used_twice_and_old_events_are_pruned_per_recipient() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let announce = |store: &Store, name: &'static str, count: usize| {
        smol::block_on(store.write(move |tx| {
            let mut last = 0;
            for _ in 0..count {
                last = tx.announce(name, "new_mail", "{}".to_owned())?;
            }
            Ok(last)
        }))
        .unwrap()
    };
    smol::block_on(store.write(|tx| add(tx, "ann").and_then(|()| add(tx, "bob")))).unwrap();
    announce(&store, "bob", 1);
    let last = announce(&store, "ann", REPLAY_LIMIT * 2);
    let count = |name: &'static str| {
        smol::block_on(store.read(move |db| {
            let query = "SELECT count(*) FROM events WHERE recipient = ?1";
            Ok(db.query_row(query, [name], |row| row.get::<_, usize>(0))?)
        }))
        .unwrap()
    };
    assert_eq!(count("bob"), 1);
    assert!((REPLAY_LIMIT..REPLAY_LIMIT + PRUNE_EVERY as usize).contains(&count("ann")));
    smol::block_on(store.write(|tx| Ok(tx.execute("DELETE FROM events", [])?))).unwrap();
    store.close();
    let store = open(folder.path());
    assert_eq!(announce(&store, "ann", 1), last + 1);
}

#[test]
fn a_file_of_a_later_version_or_of_another_program_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mail.db");
    open(folder.path()).close();
    let newer = Connection::open(&path).unwrap();
    newer.pragma_update(None, "user_version", schema::VERSION + 1).unwrap();
    drop(newer);
    let refused = Store::open(&path).err().unwrap();
    assert!(
        matches!(refused, OpenError::NewerSchema { found, known } if found == known + 1),
        "{refused}"
    );
    let other = folder.path().join("other.db");
    Connection::open(&other).unwrap().execute_batch("CREATE TABLE theirs (x)").unwrap();
    let refused = Store::open(&other).err().unwrap();
    assert!(matches!(refused, OpenError::Foreign), "{refused}");
}

#[test]
fn closing_finishes_queued_work_and_leaves_one_file() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let pending = smol::spawn({
        let store = store.clone();
        async move { store.write(|tx| add(tx, "late")).await }
    });
    smol::block_on(pending).unwrap();
    store.close();
    assert!(smol::block_on(store.write(|tx| add(tx, "too late"))).is_err());
    let files: Vec<_> =
        fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(files, ["mail.db"]);
    assert_eq!(names(&open(folder.path())), ["late"]);
}

#[cfg(unix)]
#[test]
fn folder_and_files_are_private_also_when_they_were_not() {
    use std::os::unix::fs::PermissionsExt as _;
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("new").join("data");
    let store = open(&folder);
    smol::block_on(store.write(|tx| add(tx, "ann"))).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700);
    for file in ["mail.db", "mail.db-wal", "mail.db-shm"] {
        assert_eq!(mode(&folder.join(file)), 0o600, "{file}");
    }
    store.close();
    fs::set_permissions(folder.join("mail.db"), fs::Permissions::from_mode(0o644)).unwrap();
    drop(open(&folder));
    assert_eq!(mode(&folder.join("mail.db")), 0o600);
}

#[test]
fn a_mail_and_its_reader_are_found_by_both_columns_and_not_through_the_mailbox() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let plan = smol::block_on(store.read(|db| {
        let mut statement = db.prepare(
            "EXPLAIN QUERY PLAN SELECT read_at FROM mail_recipients WHERE mail_id = 'm' AND name = 'n'",
        )?;
        let rows = statement.query_map([], |row| row.get::<_, String>(3))?;
        Ok(rows.collect::<Result<Vec<_>, _>>()?)
    }))
    .unwrap();
    assert!(plan[0].contains("mail_recipients_by_mail (mail_id=? AND name=?)"), "{plan:?}");
}
