//! Texts of CLIF: Cranelift's file tests, and texts that are spoilt.

mod clif_text;
mod filetests;
