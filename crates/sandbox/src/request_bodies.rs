//! Reads the bodies of requests, within limits of time and memory.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Body;
use tokio::sync::{Semaphore, SemaphorePermit};

use super::answer::{Failure, Result};
use super::body;

/// The time limit for sending a body.
const BODY_TIME: Duration = Duration::from_secs(10);
/// Bodies up to this length are read at once, so that large ones delay nobody. On all 256
/// connections together they take 16 MiB.
const SMALL: usize = 64 * 1024;
/// The limit in bytes for all longer bodies together, from before they are read until they are
/// answered. Others wait. So the memory of the service is bounded, and a client with many uploads
/// needs no retries.
const MOST_HELD: usize = 112 * 1024 * 1024;

/// The memory for bodies.
#[derive(Debug)]
pub(crate) struct Intake {
    room: Semaphore,
}

/// A body that was read, with its share of the memory.
#[derive(Debug)]
pub(crate) struct HeldBody<'a> {
    pub(crate) bytes: Bytes,
    _share: Option<SemaphorePermit<'a>>,
}

impl Default for Intake {
    fn default() -> Self {
        Self { room: Semaphore::new(MOST_HELD) }
    }
}

impl Intake {
    /// Reads a body to its end: 413 if it is too long, 408 if it takes too long. The time starts
    /// when there is room.
    pub(crate) async fn read<B: Body<Data = Bytes>>(
        &self,
        headers: &HeaderMap,
        incoming: B,
    ) -> Result<HeldBody<'_>>
    where
        B::Error: std::error::Error + Send + Sync + 'static,
    {
        let most = body::most(headers);
        // Without an announced length, it may have the maximum.
        let length = incoming
            .size_hint()
            .upper()
            .and_then(|length| usize::try_from(length).ok())
            .map_or(most, |length| length.min(most));
        let share = self.share(length).await;
        let read = async {
            let mut bytes = BytesMut::with_capacity(length);
            let mut incoming = std::pin::pin!(Limited::new(incoming, most));
            while let Some(frame) = incoming.frame().await {
                let frame = frame.map_err(|_| body::too_large())?;
                // Copy the parts into one buffer: each of them may keep a much larger buffer alive.
                if let Some(part) = frame.data_ref() {
                    bytes.extend_from_slice(part);
                }
            }
            Ok::<_, Failure>(bytes.freeze())
        };
        let read = tokio::time::timeout(BODY_TIME, read).await;
        let bytes =
            read.map_err(|_| Failure::error(StatusCode::REQUEST_TIMEOUT, "408 Request Timeout"))??;
        Ok(HeldBody { bytes, _share: share })
    }

    /// Waits for room for a body of this length. Waiting requests are served in order.
    async fn share(&self, length: usize) -> Option<SemaphorePermit<'_>> {
        let length = u32::try_from(length).ok().filter(|_| length > SMALL)?;
        // The semaphore is never closed. Without a permit, only the limit is lost.
        self.room.acquire_many(length).await.ok()
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

    const UPLOAD: usize = 10 * 1024 * 1024;

    fn upload() -> HeaderMap {
        HeaderMap::from_iter([(
            header::CONTENT_TYPE,
            header::HeaderValue::from_static("multipart/form-data; boundary=x"),
        )])
    }

    fn whole(length: usize) -> Full<Bytes> {
        Full::new(Bytes::from(vec![b'x'; length]))
    }

    #[tokio::test]
    async fn a_body_is_read_up_to_its_limit() {
        let intake = Intake::default();
        let headers = HeaderMap::new();
        for length in [0, 1, SMALL, SMALL + 1, 1024 * 1024] {
            assert_eq!(
                intake.read(&headers, whole(length)).await.expect("a body").bytes.len(),
                length
            );
        }
        let failure = intake.read(&headers, whole(1024 * 1024 + 1)).await.expect_err("too long");
        assert_eq!(failure.status, StatusCode::PAYLOAD_TOO_LARGE);
        let parts = ["a", "b"]
            .map(|part| Ok::<_, std::io::Error>(Frame::data(Bytes::from_static(part.as_bytes()))));
        let parts = StreamBody::new(stream::iter(parts));
        assert_eq!(intake.read(&headers, parts).await.expect("a body").bytes, "ab");
        assert_eq!(intake.room.available_permits(), MOST_HELD);
    }

    #[tokio::test]
    async fn all_bodies_together_are_bounded_and_small_ones_never_wait() {
        let intake = Intake::default();
        let mut held = Vec::new();
        while intake.room.available_permits() >= UPLOAD {
            held.push(intake.read(&upload(), whole(UPLOAD)).await.expect("a body"));
        }
        assert_eq!(held.len(), 11);
        assert!(intake.read(&upload(), whole(UPLOAD)).now_or_never().is_none(), "there is no room");
        // Its length is not announced.
        let endless = StreamBody::new(stream::pending::<Result<Frame<Bytes>, std::io::Error>>());
        assert!(intake.read(&upload(), endless).now_or_never().is_none());
        assert!(intake.read(&upload(), whole(SMALL)).await.is_ok());
        held.pop();
        assert!(intake.read(&upload(), whole(UPLOAD)).await.is_ok(), "there is room again");
    }
}
