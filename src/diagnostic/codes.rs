//! Every sort of diagnostic, with a paragraph on what lies behind it.
