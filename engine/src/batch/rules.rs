//! The rules of a folder as one type.

/// Declares the rules of a folder, by file and type: an enum with a variant for each type, the components of the files,
/// and three macros. The first token must be a dollar sign, which the three macros need.
///
/// - `chosen!(component, (ARGUMENTS))` makes the rule of a component: it calls `of` of each type in the component's
///   file and takes the first rule that is returned.
/// - `each!(rules, rule => EXPRESSION)` evaluates an expression with the chosen rule, by code compiled for its type.
/// - `same!(rules, rule => EXPRESSION)` does so, too, and wraps the result, a rule of the same type, in the enum.
macro_rules! rules {
    ($d:tt $(#[$about:meta])* $vis:vis enum $Any:ident { $($file:ident: $($Rule:ident)|+),* $(,)? }) => {
        $(#[$about])*
        #[derive(Debug, Clone)]
        $vis enum $Any {
            $($($Rule($file::$Rule)),+),*
        }

        /// The components of this folder's rules.
        pub static COMPONENTS: &[&crate::spec::Component] = &[$(&$file::COMPONENT),*];

        macro_rules! chosen {
            ($d component:expr, $d arguments:tt) => {
                'chosen: {
                    $(if *$d component == $file::COMPONENT {
                        $(if let Some(rule) = $file::$Rule::of $d arguments {
                            break 'chosen Some($Any::$Rule(rule));
                        })+
                    })*
                    None
                }
            };
        }

        #[allow(unused_macros)]
        macro_rules! same {
            ($d rules:expr, $d rule:ident => $d value:expr) => {
                match $d rules {
                    $($($Any::$Rule($d rule) => $Any::$Rule($d value)),+),*
                }
            };
        }

        macro_rules! each {
            ($d rules:expr, $d rule:ident => $d value:expr) => {
                match $d rules {
                    $($($Any::$Rule($d rule) => $d value),+),*
                }
            };
        }
    };
}

pub(super) use rules;
