//! Files to the gateway and back, streamed: memory does not depend on their size.

use std::fs::File;
use std::io::{self, Read as _, Write as _};

use async_io::Timer;
use bytes::Bytes;
use futures_lite::{future, stream};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use zcode_mail_core::api::{ApiError, attachment};
use zcode_mail_core::http::{Fault, Method, Outcome};
use zcode_mail_core::tool::{FileFault, NeedDownload, NeedUpload, TransferOutcome};

use super::client::{Answer, Body, TRANSFER, empty, fault, prepare};
use super::files::{self, Source};
use super::perform::{Context, Listener};
use super::target::Target;

/// Bytes read or written at once.
const CHUNK: usize = 64 * 1024;
/// Largest file taken, in bytes (1 GiB): a gateway may allow more than 25 MB, but a disk has an
/// end.
const MAX_DOWNLOAD: u64 = 1024 * 1024 * 1024;
/// Random bytes of a multipart boundary: long enough not to occur in a file by chance.
const BOUNDARY_BYTES: usize = 16;

/// The error that an answer is, for a call that needs a success.
pub(super) fn refusal(answer: &Answer) -> ApiError {
    match attachment::parse_refusal(answer.outcome()) {
        Err(error) => error,
        Ok(()) => lost(Fault::Truncated),
    }
}

fn lost(fault: Fault) -> ApiError {
    match attachment::parse_refusal(Outcome::Failed(fault)) {
        Err(error) => error,
        // A fault never parses as a success.
        Ok(()) => ApiError::Temporary {
            cause: zcode_mail_core::api::TemporaryCause::Fault(fault),
            message: fault.to_string(),
            retry_after_s: None,
        },
    }
}

/// Sends a file.
pub(super) async fn upload(
    context: &Context,
    target: &Target,
    need: &NeedUpload,
    listener: &Listener,
) -> TransferOutcome {
    let (path, shown) = (need.file_path.clone(), need.filename.clone());
    let source = match blocking::unblock(move || files::source(&path)).await {
        Ok(source) => source,
        Err(fault) => return TransferOutcome::File(fault),
    };
    let filename = shown.unwrap_or_else(|| source.name.clone());
    let size = source.size;
    let work = send(context, target, source, &filename, listener.clone());
    let limit = async {
        Timer::after(TRANSFER).await;
        Err(Fault::TimedOut)
    };
    let answer = match future::or(work, limit).await {
        Ok(answer) => answer,
        Err(fault) => return TransferOutcome::Api(lost(fault)),
    };
    match attachment::parse_upload(answer.outcome()) {
        Ok(stored) => {
            TransferOutcome::Uploaded { attachment_id: stored.attachment_id, filename, size }
        }
        Err(error) => TransferOutcome::Api(error),
    }
}

async fn send(
    context: &Context,
    target: &Target,
    source: Source,
    filename: &str,
    listener: Listener,
) -> Result<Answer, Fault> {
    let mut random = [0; BOUNDARY_BYTES];
    getrandom::fill(&mut random).map_err(|_| Fault::Unreachable)?;
    let boundary: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    let form = attachment::Multipart::new(&boundary, filename);
    let length = (form.head.len() + form.tail.len()) as u64 + source.size;
    let body = upload_body(&form, source, listener);
    let path = format!("{}{}", zcode_mail_core::http::API_PREFIX, attachment::UPLOAD_PATH);
    let kind = Some(form.content_type.as_str());
    let request = prepare(target, Method::Post, &path, kind, Some(length), body)?;
    let open = context.client.open(target, request).await?;
    context.client.read(open).await
}

/// Head, file, tail. A file that turns out shorter than it was breaks the exchange.
fn upload_body(form: &attachment::Multipart, source: Source, listener: Listener) -> Body {
    enum Step {
        Head(File),
        File(File, u64),
        End,
    }
    let (head, tail) = (form.head.clone(), form.tail.clone());
    let total = source.size;
    let steps = stream::try_unfold(Step::Head(source.file), move |step| {
        let (head, tail, listener) = (head.clone(), tail.clone(), listener.clone());
        async move {
            match step {
                Step::Head(file) => {
                    Ok::<_, io::Error>(Some((Frame::data(Bytes::from(head)), Step::File(file, 0))))
                }
                Step::File(_, done) if done == total => {
                    Ok(Some((Frame::data(Bytes::from(tail)), Step::End)))
                }
                Step::File(file, done) => {
                    let (file, chunk) = read(file, total - done).await?;
                    let done = done + chunk.len() as u64;
                    listener.progress(done, total);
                    Ok(Some((Frame::data(chunk), Step::File(file, done))))
                }
                Step::End => Ok(None),
            }
        }
    });
    StreamBody::new(steps).boxed_unsync()
}

async fn read(file: File, left: u64) -> io::Result<(File, Bytes)> {
    blocking::unblock(move || {
        let mut file = file;
        let mut chunk = vec![0; usize::try_from(left).unwrap_or(CHUNK).min(CHUNK)];
        let got = file.read(&mut chunk)?;
        if got == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        chunk.truncate(got);
        Ok((file, chunk.into()))
    })
    .await
}

/// Saves an attachment.
pub(super) async fn download(
    context: &Context,
    target: &Target,
    need: &NeedDownload,
    listener: &Listener,
) -> TransferOutcome {
    let limit = async {
        Timer::after(TRANSFER).await;
        TransferOutcome::Api(lost(Fault::TimedOut))
    };
    let work = async {
        match fetch(context, target, need, listener).await {
            Ok(outcome) => outcome,
            Err(fault) => TransferOutcome::Api(lost(fault)),
        }
    };
    future::or(work, limit).await
}

async fn fetch(
    context: &Context,
    target: &Target,
    need: &NeedDownload,
    listener: &Listener,
) -> Result<TransferOutcome, Fault> {
    let request = prepare(target, need.request.method, &need.request.path, None, None, empty())?;
    let open = context.client.open(target, request).await?;
    if !open.reply.status().is_success() {
        let answer = context.client.read(open).await?;
        return Ok(TransferOutcome::Api(refusal(&answer)));
    }
    let (reply, _connection) = open.into_stream();
    let header = |name: &str| reply.headers().get(name).map(|v| v.as_bytes().to_vec());
    let disposition = header("content-disposition");
    let named = disposition
        .and_then(|value| String::from_utf8(value).ok())
        .and_then(|value| attachment::disposition_name(&value));
    let total = header("content-length")
        .and_then(|value| String::from_utf8(value).ok()?.parse::<u64>().ok());
    if let Some(total) = total.filter(|total| *total > MAX_DOWNLOAD) {
        return Ok(TransferOutcome::File(FileFault::TooLarge(total, MAX_DOWNLOAD)));
    }
    let (save_path, name) = (need.save_path.clone(), named.unwrap_or_default());
    let made = blocking::unblock(move || files::destination(save_path.as_deref(), &name)).await;
    let (mut destination, mut file) = match made {
        Ok(made) => made,
        Err(fault) => return Ok(TransferOutcome::File(fault)),
    };
    let (mut incoming, mut size) = (reply.into_body(), 0);
    while let Some(frame) = incoming.frame().await {
        let frame = frame.map_err(|error| fault(&error))?;
        let Ok(data) = frame.into_data() else { continue };
        size += data.len() as u64;
        if size > MAX_DOWNLOAD {
            return Ok(TransferOutcome::File(FileFault::TooLarge(size, MAX_DOWNLOAD)));
        }
        let written = blocking::unblock(move || file.write_all(&data).map(|()| file)).await;
        file = match written {
            Ok(file) => file,
            Err(error) => return Ok(TransferOutcome::File(destination.unusable(&error))),
        };
        if let Some(total) = total {
            listener.progress(size, total);
        }
    }
    if total.is_some_and(|total| total != size) {
        return Err(Fault::Truncated);
    }
    let path = destination.keep();
    Ok(TransferOutcome::Downloaded { path, size })
}
