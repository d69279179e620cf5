//! The paging headers of a response.

use std::{num::NonZeroUsize, str::FromStr};

use http::HeaderMap;
use percent_encoding::percent_decode_str;

use super::Contradiction;

/// The values of the paging headers of one page. `None` if a header is missing. An empty header is
/// treated as missing, except `X-Next-Page`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct PagingHeaders {
    /// `X-Page`: the number of the page.
    pub(super) page: Option<u64>,
    /// `X-Per-Page`: the number of entries in a full page.
    pub(super) page_size: Option<usize>,
    /// `X-Total`: the number of entries in the list.
    pub(super) total: Option<u64>,
    /// `X-Total-Pages`: the number of pages in the list.
    pub(super) total_pages: Option<u64>,
    /// `X-Next-Page`: the next page; `Some(None)` if there is none.
    pub(super) next_page: Option<Option<u64>>,
    /// `Link`: the link to the next page; `Some(None)` if there is none.
    pub(super) next_link: Option<Option<PageLink>>,
}

/// The parameters of a link that give the position of its page. No request is sent to the URL of
/// the link, because another host must not receive the token.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct PageLink {
    pub(super) page: Option<u64>,
    pub(super) id_after: Option<u64>,
    pub(super) cursor: Option<String>,
}

/// The error for a malformed `Link` header.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct MalformedHeader;

impl PagingHeaders {
    /// Reads the headers of page `page`.
    pub(super) fn read(headers: &HeaderMap, page: u64) -> Result<Self, Contradiction> {
        Ok(Self {
            page: header_number(headers, "X-Page", page)?,
            page_size: header_number(headers, "X-Per-Page", page)?.map(NonZeroUsize::get),
            total: header_number(headers, "X-Total", page)?,
            total_pages: header_number(headers, "X-Total-Pages", page)?,
            next_page: header_number(headers, "X-Next-Page", page)
                .map(|number| headers.contains_key("X-Next-Page").then_some(number))?,
            next_link: read_next_link(headers)
                .map_err(|MalformedHeader| Contradiction::malformed_header(page, "Link"))?,
        })
    }
}

/// The number in the header `name` of page `page`. Several equal values are treated as one value;
/// different values are an error.
fn header_number<T: FromStr>(
    headers: &HeaderMap,
    name: &str,
    page: u64,
) -> Result<Option<T>, Contradiction> {
    let mut values = headers.get_all(name).iter().map(|value| value.to_str().ok().map(str::trim));
    let Some(first_value) = values.next() else { return Ok(None) };
    let value = first_value.filter(|value| values.all(|other| other == Some(*value)));
    if value == Some("") {
        return Ok(None);
    }
    let number = value.and_then(|value| value.parse().ok());
    number.map(Some).ok_or_else(|| Contradiction::malformed_header(page, name))
}

/// Reads the `Link` headers (RFC 8288). Returns the link to the next page, `Some(None)` if there are
/// only links to other pages, and `None` if there is no link to a page.
fn read_next_link(headers: &HeaderMap) -> Result<Option<Option<PageLink>>, MalformedHeader> {
    let mut link = None;
    for value in headers.get_all("Link") {
        let mut unread_text = value.to_str().map_err(|_| MalformedHeader)?;
        while let Some(start) = unread_text.find('<') {
            let end = unread_text[start..].find('>').ok_or(MalformedHeader)? + start;
            let url = &unread_text[start + 1..end];
            let (parameters, tail) = split_outside_quotes(&unread_text[end + 1..], ',');
            if has_relation(parameters, &["next"]) {
                let parsed_link = PageLink::parse(url)?;
                if matches!(&link, Some(Some(other)) if *other != parsed_link) {
                    return Err(MalformedHeader);
                }
                link = Some(Some(parsed_link));
            } else if has_relation(parameters, &["first", "prev", "last"]) {
                link = link.or(Some(None));
            }
            unread_text = tail;
        }
    }
    Ok(link)
}

impl PageLink {
    /// Reads the query of a link target.
    fn parse(target: &str) -> Result<Self, MalformedHeader> {
        let (target, _) = target.split_once('#').unwrap_or((target, ""));
        let (_, query) = target.split_once('?').unwrap_or_default();
        let mut link = Self::default();
        for (name, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
            match name {
                "page" => link.page = Some(value.parse().map_err(|_| MalformedHeader)?),
                "id_after" => link.id_after = Some(value.parse().map_err(|_| MalformedHeader)?),
                "cursor" => {
                    let value = value.replace('+', " ");
                    let cursor = percent_decode_str(&value).decode_utf8();
                    link.cursor = Some(cursor.map_err(|_| MalformedHeader)?.into_owned());
                }
                _ => {}
            }
        }
        if link == Self::default() { Err(MalformedHeader) } else { Ok(link) }
    }
}

/// True if the parameters of a link, such as `; rel="next last"`, have one of these relations.
fn has_relation(mut parameters: &str, names: &[&str]) -> bool {
    while !parameters.is_empty() {
        let (parameter, tail) = split_outside_quotes(parameters, ';');
        parameters = tail;
        let (name, value) = parameter.split_once('=').unwrap_or_default();
        let mut relations = value.trim().trim_matches('"').split_ascii_whitespace();
        if name.trim().eq_ignore_ascii_case("rel")
            && relations
                .any(|relation| names.iter().any(|name| relation.eq_ignore_ascii_case(name)))
        {
            return true;
        }
    }
    false
}

/// Splits at the first `separator` outside of double quotes.
fn split_outside_quotes(text: &str, separator: char) -> (&str, &str) {
    let mut is_quoted = false;
    for (index, c) in text.char_indices() {
        match c {
            '"' => is_quoted = !is_quoted,
            c if c == separator && !is_quoted => {
                return (&text[..index], &text[index + c.len_utf8()..]);
            }
            _ => {}
        }
    }
    (text, "")
}

#[cfg(test)]
mod tests {
    use super::{super::tests::make_headers, *};

    fn link(page: u64) -> PageLink {
        PageLink { page: Some(page), ..PageLink::default() }
    }

    #[test]
    fn a_link_is_read_according_to_the_standard() {
        let table = [
            (r#"<https://h/x?page=2>; rel="next""#, Some(Some(link(2)))),
            ("</x?page=2>;REL=next", Some(Some(link(2)))),
            (
                r#"<a?page=1>; rel="prev", <b?page=3>; title="a, b; rel=prev"; rel="last next""#,
                Some(Some(link(3))),
            ),
            (r#"<a?page=3>; rel="next", <b?page=3&per_page=7>; rel="next""#, Some(Some(link(3)))),
            (r#"<a,b?page=2>; rel="next", <a?page=1>; rel=first"#, Some(Some(link(2)))),
            (r#"<a?page=1>; rel="first""#, Some(None)),
            (r#"<a?page=1>; rel="last""#, Some(None)),
            (r#"<a?page=1>; title="rel=next""#, None),
            (r#"<a?page=1>; rel="nextish""#, None),
            ("</style.css>; rel=preload", None),
            ("", None),
        ];
        for (text, expected) in table {
            assert_eq!(read_next_link(&make_headers(&[("link", text)])), Ok(expected), "{text}");
        }
        let malformed_links = [
            "<a",
            "<a?page=x>; rel=next",
            "<a?per_page=2>; rel=next",
            "<a?page=2>; rel=next, <a?page=3>; rel=next",
        ];
        for text in malformed_links {
            assert_eq!(
                read_next_link(&make_headers(&[("link", text)])),
                Err(MalformedHeader),
                "{text}"
            );
        }
        let two_links =
            make_headers(&[("link", "<a>; rel=first"), ("link", "<b?page=2>; rel=next")]);
        assert_eq!(read_next_link(&two_links), Ok(Some(Some(link(2)))));
        let cursor = PageLink { cursor: Some("a+b c=".to_owned()), id_after: Some(7), ..link(2) };
        assert_eq!(
            PageLink::parse("https://h/x?cursor=a%2Bb+c%3D&page=2&evil=1&id_after=7#f"),
            Ok(cursor)
        );
    }

    #[test]
    fn an_empty_header_counts_as_missing_except_next_page() {
        let empty_headers = make_headers(
            &["x-page", "x-per-page", "x-total", "x-total-pages", "x-next-page", "link"]
                .map(|name| (name, "")),
        );
        let nothing = PagingHeaders::read(&HeaderMap::new(), 1).unwrap();
        assert_eq!(
            PagingHeaders::read(&empty_headers, 1).unwrap(),
            PagingHeaders { next_page: Some(None), ..nothing }
        );
    }

    #[test]
    fn a_malformed_number_is_refused() {
        for name in ["X-Page", "X-Per-Page", "X-Total", "X-Total-Pages", "X-Next-Page"] {
            let malformed = Err(Contradiction::malformed_header(3, name));
            for pairs in [
                &[(name, "many")][..],
                &[(name, "-1")],
                &[(name, "1"), (name, "2")],
                &[(name, "99999999999999999999")],
            ] {
                assert_eq!(PagingHeaders::read(&make_headers(pairs), 3), malformed, "{pairs:?}");
            }
            assert!(
                PagingHeaders::read(&make_headers(&[(name, "1"), (name, "1")]), 3).is_ok(),
                "{name}"
            );
        }
        let unclear = Err(Contradiction::malformed_header(3, "X-Per-Page"));
        assert_eq!(PagingHeaders::read(&make_headers(&[("x-per-page", "0")]), 3), unclear);
    }
}
