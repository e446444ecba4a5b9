use std::path::Path;

use rcgen::{CertificateParams, KeyPair, SanType};

use super::*;
use crate::access::{AccessOptions, Guard, GuardOptions, NewToken, Scope};
use crate::testing::node;

/// Rules by which `ann` administrates.
const ANN: &str = "[[rule]]\nname = 'ann'\nidentities = ['ann']\nrole = 'admin'\nnamespaces = ['*']\n";
/// Rules that give `billing` something.
const BILLING: &str = "[[rule]]\nname = 'billing'\nidentities = ['billing']\nrole = 'consumer'\n";

/// A caller and their connection.
struct Asking {
    peer: Peer,
    caller: Caller,
}

impl Asking {
    fn over(access: &Access, certificate: Option<&[u8]>, authorization: Option<&str>) -> Asking {
        let guard = Arc::new(Guard::new(GuardOptions::default()));
        let peer = Peer::new(access, guard.enter([192, 0, 2, 1].into()).unwrap(), certificate);
        let caller = peer.caller(authorization.map(str::as_bytes), false).unwrap();
        Asking { peer, caller }
    }

    /// A caller with a token of this scope.
    async fn by_token(access: &Access, node: &Node, name: &str, scope: &str) -> Asking {
        let scopes = vec![Scope::new("*", scope).unwrap()];
        let new = NewToken { name: name.to_owned(), scopes, expires_at_ms: None };
        let (_, secret) = access.token_create(node, new, "").await.unwrap();
        Asking::over(access, None, Some(&format!("Bearer {}", secret.0)))
    }

    fn change<'c>(&'c self, replaces: Option<&'c str>) -> PolicyChange<'c> {
        PolicyChange { peer: &self.peer, caller: &self.caller, replaces }
    }
}

fn told(error: AccessError) -> (&'static str, String) {
    match error {
        AccessError::Own(code, message) => (code, message),
        AccessError::Engine(error) => (error.code(), error.to_string()),
    }
}

/// True if somebody is given something by the policy in force.
fn names(access: &Access, identity: &str) -> bool {
    access.rules().1.policy.grants_of(identity).next().is_some()
}

fn with_file(path: &Path, text: &str) -> Access {
    std::fs::write(path, text).unwrap();
    Access::new(AccessOptions { policy: Some(path.to_owned()), ..AccessOptions::default() }).unwrap()
}

#[tokio::test]
async fn a_policy_that_is_set_on_one_node_counts_on_each_instead_of_its_file() {
    let (node, here) = (node(), Access::default());
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("policy.toml");
    let there = with_file(&file, ANN);
    let ops = Asking::by_token(&here, &node, "ops", "admin").await;
    there.refresh_policy(&node.stale()).await.unwrap();
    assert!(names(&there, "ann") && there.file_policy().is_some_and(|file| file.len() == 8));

    let (stored, is_first) = here.policy_set(&node, ops.change(None), BILLING).await.unwrap();
    assert!(is_first && names(&here, "billing") && !names(&there, "billing"));
    there.refresh_policy(&node.stale()).await.unwrap();
    assert!(names(&there, "billing") && !names(&there, "ann"));
    assert_eq!((there.file_policy(), here.file_policy()), (None, None));
    let shown = there.policy(&node).await.unwrap();
    assert_eq!((&*shown.text, &*shown.set_by, &shown.version), (BILLING, "ops", &stored.version));

    // A change of the file does nothing, and a start finds what is stored.
    std::fs::write(&file, format!("{ANN}queues = ['a']\n")).unwrap();
    assert_eq!(there.reload(), Ok(false));
    assert!(!names(&there, "ann"));
    let started = with_file(&file, ANN);
    started.load_policy(&node.stale()).await.unwrap();
    assert!(names(&started, "billing") && !names(&started, "ann"));

    here.policy_remove(&node, ops.change(Some(&stored.version))).await.unwrap();
    assert!(!names(&here, "billing"));
    there.refresh_policy(&node.stale()).await.unwrap();
    assert!(names(&there, "ann") && !names(&there, "billing"));
    let gone = here.policy_remove(&node, ops.change(None)).await.unwrap_err();
    assert_eq!(told(gone).0, "policy_not_found");
    assert_eq!(told(here.policy(&node).await.unwrap_err()).0, "policy_not_found");
}

#[tokio::test]
async fn a_policy_with_mistakes_changes_nothing_and_all_of_them_are_told() {
    let (node, access) = (node(), Access::default());
    let ops = Asking::by_token(&access, &node, "ops", "admin").await;
    access.policy_set(&node, ops.change(None), BILLING).await.unwrap();
    let wrong = format!("{BILLING}queue = ['a']\n[[rate]]\nidentities = ['*']\n");
    let (code, message) = told(access.policy_set(&node, ops.change(None), &wrong).await.unwrap_err());
    assert_eq!(code, "invalid_argument");
    assert!(message.starts_with("policy: cannot be used:\n  - line 5: rule 1: \"queue\""), "{message}");
    assert!(message.contains("\n  - line 6: rate 1: requests_per_s is missing"), "{message}");
    assert!(told(access.policy_set(&node, ops.change(None), "rule").await.unwrap_err()).1.contains("TOML"));
    assert_eq!(access.policy(&node).await.unwrap().text, BILLING);
}

#[tokio::test]
async fn of_two_editors_the_second_is_told_that_the_policy_has_changed() {
    let (node, access) = (node(), Access::default());
    let ops = Asking::by_token(&access, &node, "ops", "admin").await;
    let set = async |replaces, text| {
        let set = access.policy_set(&node, ops.change(replaces), text).await;
        set.map(|(stored, _)| stored.version.clone()).map_err(told)
    };
    let first = set(Some(""), BILLING).await.unwrap();
    let second = set(Some(&first), ANN).await.unwrap();
    assert_ne!(first, second);
    let both = format!("{ANN}{BILLING}");
    for replaces in ["", &first, "rubbish"] {
        let (code, message) = set(Some(replaces), &both).await.unwrap_err();
        assert_eq!(code, "version_mismatch");
        assert!(message.contains(&second) && message.contains("\"ops\""), "{message}");
        let removed = access.policy_remove(&node, ops.change(Some(replaces))).await.map_err(told);
        assert_eq!(removed.unwrap_err().0, "version_mismatch");
    }
    // A call that is repeated, since its answer was lost.
    assert_eq!(set(Some(&first), ANN).await, Ok(second.clone()));
    assert_eq!(set(None, ANN).await, Ok(second.clone()));
    assert_ne!(set(Some(&second), &both).await.unwrap(), second);
    assert_eq!(POLICY.all(&node).await.unwrap().len(), 1);
}

#[tokio::test]
async fn nobody_takes_the_right_from_themselves_to_take_it_back() {
    let (node, access) = (node(), Access::default());
    let nobody = Asking::over(&access, None, None);
    let refused = told(access.policy_set(&node, nobody.change(None), ANN).await.unwrap_err());
    assert!(refused.0 == "admin_needed" && refused.1.contains("--scope '*=admin'"), "{}", refused.1);
    access.policy_set(&node, nobody.change(None), "[revoked]\nserials = []\n").await.unwrap();
    assert!(!access.asks());

    let ops = Asking::by_token(&access, &node, "ops", "admin").await;
    access.policy_set(&node, ops.change(None), ANN).await.unwrap();
    // By a rule, that is.
    let ann = Asking::by_token(&access, &node, "ann", "observer").await;
    let set = access.policy_set(&node, ann.change(None), BILLING).await;
    let removed = access.policy_remove(&node, ann.change(None)).await;
    for refused in [set.map(drop), removed.map(drop)] {
        let (code, message) = told(refused.unwrap_err());
        assert!(code == "admin_needed" && message.contains("\"ann\" may not"), "{message}");
    }
    access.policy_set(&node, ann.change(None), &format!("{ANN}{BILLING}")).await.unwrap();
    access.policy_set(&node, ops.change(None), BILLING).await.unwrap();
}

#[tokio::test]
async fn revoked_certificates_count_again_by_a_clear_word_alone() {
    let options = AccessOptions { certificates: true, ..AccessOptions::default() };
    let (node, access) = (node(), Access::new(options).unwrap());
    let mut params = CertificateParams::default();
    params.serial_number = Some(vec![5, 0xab].into());
    let uris = ["sluice://client/ops", "sluice://ns/*?perm=admin"];
    params.subject_alt_names = uris.map(|uri| SanType::URI(uri.try_into().unwrap())).to_vec();
    let certificate = params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().to_vec();
    let ops = Asking::over(&access, Some(&certificate), None);

    let own = "[revoked]\nserials = ['05ab']\n";
    let (code, message) = told(access.policy_set(&node, ops.change(None), own).await.unwrap_err());
    assert!(code == "admin_needed" && message.contains("is revoked"), "{message}");
    access.policy_set(&node, ops.change(None), "[revoked]\nserials = ['0102']\n").await.unwrap();
    let (code, message) = told(access.policy_set(&node, ops.change(None), BILLING).await.unwrap_err());
    assert!(code == "invalid_argument" && message.starts_with("policy: has no [revoked]"), "{message}");
    assert!(message.contains("revokes 1 certificate:"), "{message}");
    let removed = access.policy_remove(&node, ops.change(None)).await.unwrap_err();
    assert_eq!(told(removed).0, "wrong_state");
    access.policy_set(&node, ops.change(None), "[revoked]\nserials = []\n").await.unwrap();
    access.policy_remove(&node, ops.change(None)).await.unwrap();
}

#[tokio::test]
async fn a_policy_that_cannot_be_read_leaves_the_former_in_force_until_it_is_set_anew() {
    let (node, access) = (node(), Access::default());
    let ops = Asking::by_token(&access, &node, "ops", "admin").await;
    access.policy_set(&node, ops.change(None), BILLING).await.unwrap();
    POLICY.add(&node, &json!({"text": 7}), OnceKey::default()).await.unwrap();
    access.refresh_policy(&node.stale()).await.unwrap();
    assert!(names(&access, "billing"));
    let error = Access::default().load_policy(&node).await.unwrap_err();
    assert!(error.to_string().contains("is damaged"), "{error}");
    assert_eq!(told(access.policy_remove(&node, ops.change(None)).await.unwrap_err()).0, "internal");
    access.policy_set(&node, ops.change(None), BILLING).await.unwrap();
    assert_eq!(access.policy(&node).await.unwrap().text, BILLING);
    assert_eq!(POLICY.all(&node).await.unwrap().len(), 1);
}
