//! The declaration of operations: the enum, its table, and the list of those with one request and one answer.

macro_rules! operations {
    ($(
        $(#[doc = $doc:literal])+
        $operation:ident $name:literal in $topic:literal: $scope:ident $right:ident $about:ident [$($trait:ident)*]
            $method:ident $root:ident [$($segment:literal)/ *] $($grpc:literal)?
            $(by $kind:ident $call:ident)? $(=> $request:ty)?;
    )*) => {
        /// The operations of a server.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum Operation {
            $($(#[doc = $doc])+ $operation,)*
        }

        impl Operation {
            /// Every operation; those that are called by the hundred thousand first.
            pub const ALL: &[Operation] = &[$(Operation::$operation),*];
        }

        /// One declaration for each operation, in the order of the enum.
        static DECLARATIONS: &[Declaration] = &[$(Declaration {
            name: $name,
            topic: $topic,
            about: &[$($doc),+],
            scope: Scope::$scope,
            right: Right::$right,
            subject: Subject::$about,
            traits: 0 $(| Trait::$trait as u8)*,
            http: HttpName { method: Method::$method, root: Root::$root, segments: &[$($segment),*] },
            grpc: first(&[$($grpc)?]),
            kind: [$(unary(stringify!($request)),)? $(Kind::$kind($kind::$call),)?][0],
        }),*];

        /// Hands the operations with one request and one answer to a macro, each with the type of its
        /// request, whose path begins with a module that is in scope where the macro is called.
        macro_rules! unary_operations {
            ($callback:ident) => {
                $callback! { $($($operation => $request,)?)* }
            };
        }
        pub(crate) use unary_operations;
    };
}
pub(super) use operations;
