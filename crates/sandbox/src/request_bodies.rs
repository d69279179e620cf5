//! Reads the bodies of requests, within limits of time and memory.

use bytes::BytesMut;
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Body;
use tokio::sync::{Semaphore, SemaphorePermit};

use super::body;
use crate::prelude::*;

/// The time limit for sending a body.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);
/// Bodies up to this length in bytes are read without waiting for memory, so that large bodies do
/// not delay them. On all 256 connections together, such bodies take at most 16 MiB.
const SMALL_BODY_BYTES: usize = 64 * 1024;
/// The limit in bytes for all longer bodies together. The memory for a body is reserved before the
/// body is read, and freed after its request is answered. Other bodies wait for free memory. This
/// limit bounds the memory of the service, and a client with many uploads needs no retries.
const MAX_BUFFERED_BYTES: usize = 112 * 1024 * 1024;

/// Reads bodies into bounded memory.
#[derive(Debug)]
pub(crate) struct BodyReader {
    memory: Semaphore,
}

/// A body that was read, with the permit for its memory.
#[derive(Debug)]
pub(crate) struct BufferedBody<'a> {
    pub(crate) bytes: Bytes,
    _permit: Option<SemaphorePermit<'a>>,
}

impl Default for BodyReader {
    fn default() -> Self {
        Self { memory: Semaphore::new(MAX_BUFFERED_BYTES) }
    }
}

impl BodyReader {
    /// Reads a body to its end. Fails with 413 if the body is too long, and with 408 if the client
    /// sends it too slowly. The time limit starts after the wait for memory.
    pub(crate) async fn read<B: Body<Data = Bytes>>(
        &self,
        headers: &HeaderMap,
        incoming: B,
    ) -> Result<BufferedBody<'_>>
    where
        B::Error: std::error::Error + Send + Sync + 'static,
    {
        let max_length = body::max_body_length(headers);
        // Without an announced length, the body may have the maximum length.
        let length = incoming
            .size_hint()
            .upper()
            .and_then(|length| usize::try_from(length).ok())
            .map_or(max_length, |length| length.min(max_length));
        let permit = self.reserve_memory(length).await;
        let read_frames = async {
            let mut bytes = BytesMut::with_capacity(length);
            let mut incoming = std::pin::pin!(Limited::new(incoming, max_length));
            while let Some(frame) = incoming.frame().await {
                let frame = frame.map_err(|_| body::too_large_error())?;
                // Copy the chunks into one buffer: each of them may keep a much larger buffer alive.
                if let Some(chunk) = frame.data_ref() {
                    bytes.extend_from_slice(chunk);
                }
            }
            Ok::<_, ErrorResponse>(bytes.freeze())
        };
        let read_result = tokio::time::timeout(BODY_TIMEOUT, read_frames).await;
        let bytes = read_result.map_err(|_| {
            ErrorResponse::error(StatusCode::REQUEST_TIMEOUT, "408 Request Timeout")
        })??;
        Ok(BufferedBody { bytes, _permit: permit })
    }

    /// Waits for memory for a body of this length in bytes. Waiting requests are served in order.
    async fn reserve_memory(&self, length: usize) -> Option<SemaphorePermit<'_>> {
        let length = u32::try_from(length).ok().filter(|_| length > SMALL_BODY_BYTES)?;
        // The semaphore is never closed. If it were, bodies would be read without this limit.
        self.memory.acquire_many(length).await.ok()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use futures_util::stream;
    use http::header;
    use http_body_util::{Full, StreamBody};
    use hyper::body::Frame;

    use super::*;

    const MAX_LEN: usize = 10 * 1024 * 1024;

    fn headers() -> HeaderMap {
        HeaderMap::from_iter([(
            header::CONTENT_TYPE,
            header::HeaderValue::from_static("multipart/form-data; boundary=x"),
        )])
    }

    fn whole_body(length: usize) -> Full<Bytes> {
        Full::new(Bytes::from(vec![b'x'; length]))
    }

    #[tokio::test]
    async fn a_body_is_read_up_to_its_limit() {
        let reader = BodyReader::default();
        let headers = HeaderMap::new();
        for length in [0, 1, SMALL_BODY_BYTES, SMALL_BODY_BYTES + 1, 1024 * 1024] {
            assert_eq!(
                reader.read(&headers, whole_body(length)).await.expect("a body").bytes.len(),
                length
            );
        }
        let failure =
            reader.read(&headers, whole_body(1024 * 1024 + 1)).await.expect_err("too long");
        assert_eq!(failure.status, StatusCode::PAYLOAD_TOO_LARGE);
        let parts = ["a", "b"]
            .map(|part| Ok::<_, std::io::Error>(Frame::data(Bytes::from_static(part.as_bytes()))));
        let parts = StreamBody::new(stream::iter(parts));
        assert_eq!(reader.read(&headers, parts).await.expect("a body").bytes, "ab");
        assert_eq!(reader.memory.available_permits(), MAX_BUFFERED_BYTES);
    }

    #[tokio::test]
    async fn all_bodies_together_are_bounded_and_small_ones_never_wait() {
        let reader = BodyReader::default();
        let mut bodies = Vec::new();
        while reader.memory.available_permits() >= MAX_LEN {
            bodies.push(reader.read(&headers(), whole_body(MAX_LEN)).await.expect("a body"));
        }
        assert_eq!(bodies.len(), 11);
        assert!(
            reader.read(&headers(), whole_body(MAX_LEN)).now_or_never().is_none(),
            "there is no room"
        );
        // The length of this body is not announced.
        let body = StreamBody::new(stream::pending::<Result<Frame<Bytes>, std::io::Error>>());
        assert!(reader.read(&headers(), body).now_or_never().is_none());
        assert!(reader.read(&headers(), whole_body(SMALL_BODY_BYTES)).await.is_ok());
        bodies.pop();
        assert!(reader.read(&headers(), whole_body(MAX_LEN)).await.is_ok(), "there is room again");
    }
}
