//! Writes with accepted differences, each with the reason. At most 20.

/// The name of an exchange, and why it may differ.
pub(crate) const EXCEPTIONS: &[(&str, &str)] = &[
    ("group/delete-0023", "the path of what is restored has a random suffix"),
    ("life/misc-0120", "housekeeping is locked until its job ends; here the lock is a setting"),
    ("life/misc-0134", "the service could not reach the address; addresses are not fetched here"),
    ("life/misc-0140", "the service could not reach the address; addresses are not fetched here"),
    ("mem/project-delete-0009", "it had an If-Unmodified-Since, which was not recorded"),
    ("pedit/bools-0249", "the service had no incoming mail, so no service desk"),
    ("pedit/bools-0254", "the service had no incoming mail, so no service desk"),
    ("pedit/bools-0255", "the service had no incoming mail, so no service desk"),
    ("proj/create-attrs-0209", "the service had no incoming mail, so no service desk"),
    ("proj/create-attrs-0331", "the refusal quotes a row of the service's database"),
    ("proj/create-attrs-0343", "the refusal quotes a row of the service's database"),
    (
        "proj/create-attrs-0415",
        "the service could not resolve the host; hosts are not resolved here",
    ),
    (
        "proj/create-attrs-0493",
        "the service could not resolve the host; hosts are not resolved here",
    ),
    ("var/group-delete-0009", "it had an If-Unmodified-Since, which was not recorded"),
    ("var/group-delete-0010", "it deletes what the request before it did not"),
];
