//! `upload_attachment` (`T-4`): a local file becomes an attachment id.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;

use super::args::{Arg, Args};
use super::{FileFault, NeedUpload, Next, Output, TransferOutcome, text};
use crate::lang::Lang;

const FILE_PATH: Arg = Arg::new(
    "file_path",
    "本地文件的路径",
    "the path of the local file to upload",
    "\"/home/me/project/report.pdf\"",
)
.or(&["path", "file"]);
const FILENAME: Arg =
    Arg::new("filename", "展示给收件人的文件名", "the name to show to readers", "\"report.pdf\"")
        .or(&["name"]);
pub(super) const KNOWN: &[Arg] = &[FILE_PATH, FILENAME];

pub(super) fn start(args: &Args<'_>) -> Result<Next, Output> {
    args.check_names()?;
    let file_path = args.required_verbatim(&FILE_PATH)?;
    let filename = args.text(&FILENAME)?;
    let lang = args.lang;
    let then = Box::new(move |outcome| Next::Done(finish(lang, outcome)));
    Ok(Next::Upload(NeedUpload { file_path, filename, then }))
}

fn finish(lang: Lang, outcome: TransferOutcome) -> Output {
    match outcome {
        TransferOutcome::Uploaded { attachment_id: Some(id), filename, size } => {
            let (id, filename) = (text::verbatim(&id), text::line(&filename));
            let out = match lang {
                Lang::Zh => format!(
                    "已上传 {filename}（{size} 字节）。\nattachment_id：{id}\n\
                     把它填进 send_mail 的 attachment_ids；24 小时内不随邮件发出就会被清除。\n"
                ),
                Lang::En => format!(
                    "Uploaded {filename} ({size} bytes).\nattachment_id: {id}\n\
                     Give it to send_mail as attachment_ids; unsent, it is removed after 24 hours.\n"
                ),
            };
            Output::new(out, false, lang)
        }
        TransferOutcome::Api(error) => text::failure(lang, ("上传", "uploading"), &error),
        TransferOutcome::File(fault) => file_fault(lang, ("上传", "uploading"), &fault),
        TransferOutcome::Uploaded { .. } | TransferOutcome::Downloaded { .. } => Output::new(
            lang.pick(
                "网关收下了文件，但没有给出 attachment_id，因此无法随邮件发出。",
                "The gateway took the file but gave no attachment_id, so it cannot be sent.",
            )
            .into(),
            true,
            lang,
        ),
    }
}

/// Why a local file was not read or written, and what to do.
pub(super) fn file_fault(lang: Lang, (zh, en): (&str, &str), fault: &FileFault) -> Output {
    let q = |path: &String| text::line(path);
    let (chinese, english): (String, String) = match fault {
        FileFault::NotFound(path) => (
            format!("没有这个文件或文件夹：{}。请核对路径（相对路径从工作目录算起）。", q(path)),
            format!(
                "there is no such file or folder: {}. Check the path (a relative one starts at the \
                 working directory).",
                q(path)
            ),
        ),
        FileFault::NotRegular(path) => (
            format!("{} 不是普通文件（目录、套接字、设备或管道）。请给出一个普通文件。", q(path)),
            format!(
                "{} is not a regular file (a directory, socket, device or pipe). Name a regular \
                 file.",
                q(path)
            ),
        ),
        FileFault::Outside(path, roots) => (
            format!("{} 不在允许的文件夹内（{}）。请先把文件复制进去。", q(path), q(roots)),
            format!(
                "{} lies outside the allowed folders ({}). Copy the file there first.",
                q(path),
                q(roots)
            ),
        ),
        FileFault::Secret(path) => (
            format!("{} 像是密钥或隐藏文件，不会发出去。若确实要发，请让用户自己处理。", q(path)),
            format!(
                "{} looks like a key or a hidden file and is not sent. If it must go, the user has \
                 to do it.",
                q(path)
            ),
        ),
        FileFault::TooLarge(size, limit) => (
            format!("文件有 {size} 字节，超过上限 {limit} 字节（25 MB）。请压缩或拆分。"),
            format!(
                "the file has {size} bytes, over the limit of {limit} (25 MB). Compress or split \
                 it."
            ),
        ),
        FileFault::Exists(path) => (
            format!("{} 已经存在，不会覆盖。请用 save_path 换一个名字。", q(path)),
            format!("{} exists and is never overwritten. Name another save_path.", q(path)),
        ),
        FileFault::Unusable(path, why) => (
            format!("{} 不能使用：{}。请换一个路径。", q(path), q(why)),
            format!("{} cannot be used: {}. Name another path.", q(path), q(why)),
        ),
    };
    let out = match lang {
        Lang::Zh => format!("{zh}失败：{chinese}"),
        Lang::En => format!("{en} failed: {english}"),
    };
    Output::new(out, true, lang)
}
