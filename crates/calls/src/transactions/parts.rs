//! Parts of a transaction: its operations by the namespaces that they are about.

use std::borrow::Cow;

use sluice_engine::NamespaceId;

use super::operation::Operation;
use crate::error::CallError;
use crate::fault::Fault;
use crate::permit::Permit;

/// The operations of one namespace.
pub(super) struct Part<'a> {
    permit: Permit<'a>,
    pub(super) operations: Cow<'a, [Operation<'a>]>,
    /// Places of the operations in the request; `None`: they are all of them.
    places: Option<Vec<usize>>,
}

impl<'a> Part<'a> {
    /// The parts of a request: first that of its own namespace, which may have no operations, then the others
    /// by their names. `namespaces`: those that operations name.
    pub(super) fn all(
        permit: &Permit<'a>,
        operations: &'a [Operation<'a>],
        namespaces: &'a [Option<String>],
    ) -> Result<Vec<Part<'a>>, CallError> {
        let own = permit.namespace_name();
        let of = |at: usize| namespaces.get(at).and_then(Option::as_deref).unwrap_or(own);
        let mut names = vec![own];
        for at in 0..operations.len() {
            if !names.contains(&of(at)) {
                names.push(of(at));
            }
        }
        // In whichever order they are named, it is the same request.
        names[1..].sort_unstable();
        if let [_] = names.as_slice() {
            let operations = Cow::Borrowed(operations);
            return Ok(vec![Part { permit: *permit, operations, places: None }]);
        }
        for (at, operation) in operations.iter().enumerate() {
            refuse_of_one(at, operation, of(at) == own)?;
        }
        let part = |name: &'a str| {
            let places: Vec<usize> = (0..operations.len()).filter(|at| of(*at) == name).collect();
            let first = places.first().copied().unwrap_or_default();
            let permit = permit.within(name).map_err(|error| error.at_namespace(first))?;
            let operations = places.iter().map(|at| operations[*at].clone()).collect();
            Ok(Part { permit, operations, places: Some(places) })
        };
        names.into_iter().map(part).collect()
    }

    /// Number of its namespace.
    pub(super) fn namespace(&self) -> Result<NamespaceId, CallError> {
        let found = self.permit.namespace_id().map_err(CallError::from);
        match &self.places {
            Some(places) => found.map_err(|error| error.at_namespace(places.first().copied().unwrap_or(0))),
            None => found,
        }
    }

    /// The permit for its namespace.
    pub(super) fn permit(&self) -> &Permit<'a> {
        &self.permit
    }

    /// The error with the place of its operation in the request.
    pub(super) fn placed(&self, error: CallError) -> CallError {
        match &self.places {
            Some(places) => error.at_place(|at| places.get(at).copied().unwrap_or(at)),
            None => error,
        }
    }

    /// An error about the namespace as a whole, with its name where there are several.
    pub(super) fn named(&self, error: CallError) -> CallError {
        match &self.places {
            Some(_) => error.of_namespace(self.permit().namespace_name()),
            None => error,
        }
    }

    /// Place in the request of an operation of this part.
    pub(super) fn place(&self, at: usize) -> usize {
        self.places.as_ref().and_then(|places| places.get(at).copied()).unwrap_or(at)
    }
}

/// Refuses an operation that a transaction over several namespaces cannot have: a patch, since a repeat would
/// be made of another content; and in other namespaces than that of the request all on attachments.
fn refuse_of_one(at: usize, operation: &Operation<'_>, is_own: bool) -> Result<(), CallError> {
    let reason = match operation {
        Operation::Patch(_) => "a patch is for transactions of one namespace: read the document, and put it",
        Operation::Attach(_) | Operation::Detach(_) if !is_own => {
            "attachments are of the namespace of the request, and of no other: leave `namespace` out"
        }
        Operation::Send(_)
        | Operation::Settle(_)
        | Operation::Put(_)
        | Operation::Delete(_)
        | Operation::Check(_)
        | Operation::Attach(_)
        | Operation::Detach(_)
        | Operation::Acquire(_)
        | Operation::Release(_)
        | Operation::Get(_) => return Ok(()),
    };
    let field = if is_own { operation.name() } else { "namespace" };
    let fault = Fault::invalid(reason).inside(field).at(at).inside("operations");
    Err(CallError::from(fault).of_operation(|_| None))
}
