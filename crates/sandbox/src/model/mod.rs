//! The service without a network: requests and responses are values.
//!
//! [`Model`] is for simulations that start from one [`ModelImage`] thousands of times. Time and
//! randomness come from the [`ServiceOptions`]. The same calls with the same options therefore get
//! the same bytes.

use super::store::{Store, image};
use super::{DataLocation, Seed, ServiceOptions, ServiceTier, StartError, dispatch, seeding};
use crate::prelude::*;

/// A service in memory that is called directly.
#[derive(Debug)]
pub struct Model {
    service: ServiceState,
}

/// The data of a [`Model`] at some time. Cloning is cheap.
#[derive(Clone, Debug)]
pub struct ModelImage {
    tier: ServiceTier,
    release: Release,
    store_image: image::StoreImage,
}

impl ModelImage {
    /// The options for a start on this data: the release is not lower than the release of the data.
    fn adjust_options(&self, options: ServiceOptions) -> ServiceOptions {
        let profile = options.profile;
        let release = self.release.max(profile.release);
        ServiceOptions { profile: profile.with_release(release), ..options }
    }
}

impl Model {
    /// A service with the content of the seed; `token` is the token of `root`.
    ///
    /// # Errors
    ///
    /// If the seed contradicts itself or the rules of the service, or SQLite fails.
    pub fn new(seed: &Seed, token: &str, options: ServiceOptions) -> Result<Self, StartError> {
        let store = Store::open(&DataLocation::Memory, false)?;
        let profile = match seed.release {
            Some(release) => options.profile.with_release(release),
            None => options.profile,
        };
        let options = ServiceOptions { profile, ..options };
        let service = ServiceState::new(store, seed.tier.unwrap_or_default(), options);
        service.store.write(|db: &_| {
            seeding::prepare_database(&service, db, Some(seed), token, &DataLocation::Memory)
        })?;
        Ok(Self { service })
    }

    /// A service with the content of the image, as if it had just been started.
    ///
    /// # Errors
    ///
    /// If SQLite fails.
    pub fn from_image(image: &ModelImage, options: ServiceOptions) -> rusqlite::Result<Self> {
        let store = Store::from_image(&image.store_image)?;
        Ok(Self { service: ServiceState::new(store, image.tier, image.adjust_options(options)) })
    }

    /// Resets the data to an image, as if the service had just been started on it. The reset takes
    /// microseconds if this model used the same image last: to start, to reset, or as the result of
    /// [`Self::take_image`].
    ///
    /// # Errors
    ///
    /// If SQLite fails.
    pub fn reset(&mut self, image: &ModelImage, options: ServiceOptions) -> rusqlite::Result<()> {
        self.service.store.restore(&image.store_image)?;
        self.service.restart(image.tier, image.adjust_options(options));
        Ok(())
    }

    /// Copies the current data into an image.
    ///
    /// # Errors
    ///
    /// If SQLite fails.
    pub fn take_image(&mut self) -> rusqlite::Result<ModelImage> {
        let ServiceState { tier, options, store, .. } = &mut self.service;
        Ok(ModelImage {
            tier: *tier,
            release: options.profile.release,
            store_image: store.take_image()?,
        })
    }

    /// Answers a request like a running service. The path of the request begins with `/api/v4`.
    /// Links in the response begin with the first of these that exists: the `Host` of the request,
    /// the host of its URL, `localhost`.
    pub fn answer(&self, request: Request<Bytes>) -> Response<Bytes> {
        let id = self.service.options.random.next_hex();
        let mut response = dispatch::answer(&self.service, request);
        // The duration is zero, because the clock does not advance during a call.
        dispatch::add_request_headers(response.headers_mut(), &id, Duration::ZERO);
        response
    }

    /// Calls `work` with the stored data.
    pub fn inspect<T>(&self, work: impl FnOnce(&Connection) -> T) -> T {
        self.service.store.inspect(work)
    }
}

#[cfg(test)]
mod tests;
