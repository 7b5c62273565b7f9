//! Where the probe, and in two placements a log line, stands in the task.
//!
//! Each macro stands for one position and keeps or leaves out the code that it is given, so that a task shows all
//! positions at once and what the compiler sees is only what the placement says: nothing is tested at run time.

#[allow(unused_macros)]
macro_rules! kept {
    ($($code:tt)*) => { $($code)* };
}
#[allow(unused_macros)]
macro_rules! left_out {
    ($($code:tt)*) => {};
}

/// Defines a position: its macro's name, then the placements in which the code there is kept.
macro_rules! position {
    ($name:ident: $($placement:literal),+) => {
        #[cfg(any($(feature = $placement),+))]
        pub(crate) use kept as $name;
        #[cfg(not(any($(feature = $placement),+)))]
        pub(crate) use left_out as $name;
    };
}

position!(probe_above_match: "hoisted");
position!(probe_in_zero_arm: "both-arms", "both-arms-log-after", "both-arms-log-before", "zero-arm");
position!(probe_in_n_arm: "both-arms", "both-arms-log-after", "both-arms-log-before", "n-arm");
position!(log_before_probe: "both-arms-log-before");
position!(log_after_probe: "both-arms-log-after");

#[cfg(not(any(
    feature = "both-arms",
    feature = "both-arms-log-after",
    feature = "both-arms-log-before",
    feature = "zero-arm",
    feature = "n-arm",
    feature = "hoisted",
    feature = "none"
)))]
compile_error!(
    "switch on exactly one placement: both-arms, both-arms-log-after, both-arms-log-before, zero-arm, n-arm, hoisted or none"
);

/// Fails when a placement is on together with one that comes after it.
macro_rules! not_together {
    ($first:literal, $($later:literal),+) => {
        #[cfg(all(feature = $first, any($(feature = $later),+)))]
        compile_error!(concat!("switch on exactly one placement: ", $first, " is on together with another"));
        not_together!($($later),+);
    };
    ($last:literal) => {};
}
not_together!(
    "both-arms",
    "both-arms-log-after",
    "both-arms-log-before",
    "zero-arm",
    "n-arm",
    "hoisted",
    "none"
);
