//! Whoever forgets to authorise a call has written something that does not compile.

#[test]
fn calls_without_authorisation_do_not_compile() {
    trybuild::TestCases::new().compile_fail("tests/unauthorised/*.rs");
}
