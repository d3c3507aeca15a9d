//! Asking: who decides, what they need to know, one mail per key.

use rusqlite::{Connection, OptionalExtension as _};

use zcode_mail_core::mask::mask;

use super::*;

/// Bytes of the task's mail that are shown with a request; the mail itself has the rest.
const TASK_LIMIT: usize = 4 * 1024;
/// Options of one request: a person reads them as buttons.
const OPTIONS_LIMIT: usize = 16;
/// Mails of a thread that are looked through for a person.
const ANCESTORS_LIMIT: u32 = 10_000;

/// The agent that asks.
#[derive(Clone, Debug)]
pub(in crate::gateway) struct Asker {
    pub(in crate::gateway) name: String,
    /// The owner of the key it asks with; `None` under the shared secret.
    pub(in crate::gateway) key_owner: Option<String>,
}

/// Takes a question. Returns the request and whether it was asked before.
///
/// # Errors
///
/// 400 for an empty question or impossible options; 404 for a session the agent has no part in;
/// 409 when the session's mode forbids asking, when it is archived, when nobody can be asked, and
/// for a key that belongs to another question.
pub(in crate::gateway) fn ask(
    tx: &mut Tx<'_>,
    asker: &Asker,
    ask: &Ask,
) -> Result<(Request, bool), Failure> {
    let options = ask.shown_options();
    check(ask, &options)?;
    let relay_key = Some(ask.relay_key.as_str()).filter(|key| !key.is_empty());
    if let Some(key) = relay_key
        && let Some(known) = one(tx, "r.agent_name = ?1 AND r.relay_key = ?2", (&asker.name, key))?
    {
        return same_question(&known, ask, &options).map(|()| (known, true));
    }
    super::super::accounts::ensure_agent(tx, &asker.name)?;
    let (decider, task) = match ask.session_id.as_deref() {
        Some(id) => {
            let decider = session_decider(tx, &asker.name, id)?;
            (decider, task(tx, &asker.name, id)?)
        }
        None => (key_owner(asker)?, None),
    };
    let task = task.unwrap_or_default();
    // Mail and lists never hold a secret; the original is kept apart.
    let (question, context) = (mask(&ask.question), mask(&ask.context));
    let original = (context != ask.context).then_some(ask.context.as_str());
    seen::erase(tx)?;
    let mail_id = delivery::insert(
        tx,
        &NewMail {
            session_id: ask.session_id.as_deref(),
            parent_id: task.mail_id.as_deref(),
            from_name: &asker.name,
            to_name: &decider,
            to_workspace: "",
            subject: &question,
            body: &mail_body(&question, &context, &task),
            mail_type: REQUEST_MAIL,
            read: false,
        },
    )?;
    let id = secret::id()?;
    tx.execute(
        "INSERT INTO permission_requests (id, agent_name, relay_key, session_id, mail_id, decider,
           question, options, context, task, task_from, created_at,
           original)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
        rusqlite::params![
            id,
            asker.name,
            relay_key,
            ask.session_id,
            mail_id,
            decider,
            question,
            serde_json::Value::from(options).to_string(),
            context,
            task.text,
            task.from,
            tx.now(),
            original,
        ],
    )?;
    let digest = audit::digest_in(&ask.context);
    let detail = &seen::seal(relay_key, ask.session_id.as_deref(), &question, &ask.context);
    let entry =
        Entry { event: Event::Ask, who: &asker.name, how: "api", subject: &id, digest, detail };
    audit::append(tx, &entry)?;
    audit::append(
        tx,
        &Entry { event: Event::Notify, who: &decider, how: "mail", detail: "", ..entry },
    )?;
    delivery::announce_new_mail(tx, &mail_id)?;
    let asked = changed_state(tx, &id)?;
    // A lasting approval or refusal answers at once.
    Ok((super::super::grant::answer(tx, &asked)?.unwrap_or(asked), false))
}

fn check(ask: &Ask, options: &[String]) -> Result<(), Failure> {
    if ask.question.trim().is_empty() {
        return Err(Failure::bad_request(said!(
            "字段 \"question\" 不能为空",
            "field \"question\" must not be empty"
        )));
    }
    let distinct = |(index, option): (usize, &String)| {
        !option.trim().is_empty() && !options[..index].contains(option)
    };
    if options.len() > OPTIONS_LIMIT || !options.iter().enumerate().all(distinct) {
        return Err(Failure::bad_request(said!(
            "字段 \"options\" 须为 1 到 {OPTIONS_LIMIT} 个互不相同的非空字符串",
            "field \"options\" must be 1 to {OPTIONS_LIMIT} different, non-empty strings"
        )));
    }
    Ok(())
}

fn same_question(known: &Request, ask: &Ask, options: &[String]) -> Result<(), Failure> {
    let same = known.question == mask(&ask.question)
        && known.original.as_ref().unwrap_or(&known.context) == &ask.context
        && known.session_id == ask.session_id
        && known.options == options;
    if same {
        return Ok(());
    }
    Err(Failure::conflict(said!(
        "这个 relay_key 已用于另一个问题",
        "this relay_key belongs to another question"
    ))
    .suggest(said!(
        "同一次询问重发时内容须完全相同；新的询问请用新的 relay_key",
        "a repeated question must be the same in every byte; a new one needs a new relay_key"
    )))
}

fn key_owner(asker: &Asker) -> Result<String, Failure> {
    asker.key_owner.clone().ok_or_else(|| {
        nobody(said!(
            "没有 session_id，而共享密钥不属于任何人：无人可问",
            "there is no session_id and the shared secret belongs to nobody: no one can be asked"
        ))
        .suggest(said!(
            "改用有主人的 Agent 密钥，或带上邮件会话的 session_id",
            "use an agent key, which has an owner, or send the session_id of a mail session"
        ))
    })
}

fn session_decider(db: &Connection, agent: &str, id: &str) -> Result<String, Failure> {
    let session = db
        .query_row(
            "SELECT s.owner, s.permission_mode, s.archived_at IS NOT NULL,
                    EXISTS (SELECT 1 FROM users WHERE name = s.owner)
             FROM sessions s JOIN session_participants p ON p.session_id = s.id AND p.name = ?2
             WHERE s.id = ?1",
            (id, agent),
            |row| {
                let mode: String = row.get(1)?;
                Ok((row.get::<_, String>(0)?, mode, row.get::<_, bool>(2)?, row.get::<_, bool>(3)?))
            },
        )
        .optional()?;
    let Some((owner, mode, archived, owner_is_person)) = session else {
        return Err(Failure::not_found(said!(
            "没有这个邮件会话，或 {agent} 没有参与",
            "there is no such mail session, or {agent} takes no part in it"
        )));
    };
    if archived {
        return Err(Failure::conflict(said!(
            "会话已归档，不能再请求授权",
            "the session is archived and takes no more requests"
        ))
        .suggest(said!(
            "请在新的会话里继续（地址以 .new 结尾）",
            "continue in a new session (an address that ends in .new)"
        )));
    }
    if PermissionMode::from_wire(&mode) == PermissionMode::Plan {
        return Err(Failure::conflict(said!(
            "会话处于 plan 档：只做方案，不请求授权",
            "the session is in mode plan: it plans and does not ask"
        ))
        .suggest(said!(
            "把要做的事写进方案回信，请人把会话改为 workspace 档后再执行",
            "reply with the plan and ask a person to switch the session to mode workspace"
        )));
    }
    if owner_is_person {
        return Ok(owner);
    }
    last_person(db, id)?.ok_or_else(|| {
        nobody(said!(
            "这条线索里没有人类用户：无人可问",
            "no human user takes part in this thread: no one can be asked"
        ))
        .suggest(said!(
            "不要重试；换一个不需要授权的做法，或在回信里说明需要由人来执行",
            "do not retry; find a way that needs no permission, or reply that a person must run it"
        ))
    })
}

/// The person who wrote last in the session or in what led to it. Only senders count: an agent
/// could make anybody a recipient and so choose who decides.
fn last_person(db: &Connection, session: &str) -> Result<Option<String>, Failure> {
    Ok(db
        .query_row(
            "WITH RECURSIVE thread (id, parent_id, number, from_name) AS (
               SELECT id, parent_id, number, from_name FROM mails WHERE session_id = ?1
               UNION
               SELECT m.id, m.parent_id, m.number, m.from_name
               FROM mails m JOIN thread t ON m.id = t.parent_id
               LIMIT ?2)
             SELECT t.from_name FROM thread t JOIN users u ON u.name = t.from_name
             ORDER BY t.number DESC LIMIT 1",
            (session, ANCESTORS_LIMIT),
            |row| row.get(0),
        )
        .optional()?)
}

fn nobody(message: super::super::failure::Said) -> Failure {
    Failure::conflict(message)
}

/// What set the agent to work.
#[derive(Default)]
struct Task {
    mail_id: Option<String>,
    text: String,
    from: String,
}

/// The last ordinary mail to the agent in this session (`B-8.4`).
fn task(db: &Connection, agent: &str, session: &str) -> Result<Option<Task>, Failure> {
    Ok(db
        .query_row(
            "SELECT m.id, m.subject, m.body, m.from_name
             FROM mails m JOIN mail_recipients r ON r.mail_id = m.id AND r.name = ?2
             WHERE m.session_id = ?1 AND m.mail_type = 'normal'
             ORDER BY m.number DESC LIMIT 1",
            (session, agent),
            |row| {
                let (subject, body): (String, String) = (row.get(1)?, row.get(2)?);
                Ok(Task {
                    mail_id: row.get(0)?,
                    text: shortened(&format!("{subject}\n\n{body}")),
                    from: row.get(3)?,
                })
            },
        )
        .optional()?)
}

fn shortened(text: &str) -> String {
    if text.len() <= TASK_LIMIT {
        return text.to_owned();
    }
    let cut = &text[..text.floor_char_boundary(TASK_LIMIT)];
    format!("{cut}\n[… {} bytes]", text.len() - cut.len())
}

fn mail_body(question: &str, context: &str, task: &Task) -> String {
    let mut body = format!("{question}\n\n{context}\n");
    if task.mail_id.is_some() {
        body.push_str(&format!("\n触发任务：{}\n任务来自：{}\n", task.text, task.from));
    }
    body
}
