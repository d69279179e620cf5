//! The service without a network: requests and answers are values.
//!
//! It is for simulations that start from one [`Image`] thousands of times. Time and randomness come
//! from the [`Conditions`], so the same calls under the same conditions get the same bytes.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use serde_json::Value;

use super::store::{Store, dump, image};
use super::{
    AttributeTier, Conditions, DataLocation, Seed, ServiceState, StartError, dispatch, seeding,
};
use undrift_release::Release;

/// A service in memory that is called directly.
#[derive(Debug)]
pub struct Model {
    service: ServiceState,
}

/// The data of a [`Model`] at some time. Cloning is cheap.
#[derive(Clone, Debug)]
pub struct Image {
    tier: AttributeTier,
    release: Release,
    content: image::StoreImage,
}

impl Image {
    /// Applies the conditions of another start. The release is never lowered.
    fn adjust_conditions(&self, conditions: Conditions) -> Conditions {
        let profile = conditions.profile;
        let release = self.release.max(profile.release);
        Conditions { profile: profile.with_release(release), ..conditions }
    }
}

impl Model {
    /// A service with the content of the seed; `token` is that of `root`.
    ///
    /// # Errors
    ///
    /// If the seed contradicts itself or the rules of the service, or SQLite fails.
    pub fn new(seed: &Seed, token: &str, conditions: Conditions) -> Result<Self, StartError> {
        let store = Store::open(&DataLocation::Memory, false)?;
        let profile = match seed.release {
            Some(release) => conditions.profile.with_release(release),
            None => conditions.profile,
        };
        let conditions = Conditions { profile, ..conditions };
        let service = ServiceState::new(store, seed.tier.unwrap_or_default(), conditions);
        service.store.write(|db: &_| {
            seeding::prepare(&service, db, Some(seed), token, &DataLocation::Memory)
        })?;
        Ok(Self { service })
    }

    /// A service with the content of the image, as if it had just been started.
    ///
    /// # Errors
    ///
    /// If SQLite fails.
    pub fn from_image(image: &Image, conditions: Conditions) -> rusqlite::Result<Self> {
        let store = Store::from_image(&image.content)?;
        Ok(Self {
            service: ServiceState::new(store, image.tier, image.adjust_conditions(conditions)),
        })
    }

    /// Returns to an image, as if the service had just been started on that data. This takes
    /// microseconds if the image is the last one that this model was started from, returned to, or
    /// made.
    ///
    /// # Errors
    ///
    /// If SQLite fails.
    pub fn reset(&mut self, image: &Image, conditions: Conditions) -> rusqlite::Result<()> {
        self.service.store.restore(&image.content)?;
        self.service.restart(image.tier, image.adjust_conditions(conditions));
        Ok(())
    }

    /// Its present data.
    ///
    /// # Errors
    ///
    /// If SQLite fails.
    pub fn image(&mut self) -> rusqlite::Result<Image> {
        let ServiceState { tier, profile, store, .. } = &mut self.service;
        Ok(Image { tier: *tier, release: profile.release, content: store.image()? })
    }

    /// Answers a request like a running service. Its path begins with `/api/v4`; links in the
    /// answer begin with its `Host`, else with the host of its URL, else with `localhost`.
    pub fn answer(&self, request: Request<Bytes>) -> Response<Bytes> {
        let id = self.service.chance.next_hex();
        let mut response = dispatch::answer(&self.service, request);
        // The clock has the same time during a whole call.
        dispatch::add_request_headers(response.headers_mut(), &id, Duration::ZERO);
        response
    }

    /// All stored data, with secrets, regardless of rights, limits and dialects: an object of
    /// tables, each a list of rows, each an object of columns. Only the digests of tokens and
    /// columns that repeat others are left out.
    ///
    /// # Errors
    ///
    /// If SQLite fails.
    pub fn dump(&self) -> rusqlite::Result<Value> {
        self.service.store.inspect(dump::dump)
    }
}

#[cfg(test)]
mod tests;
