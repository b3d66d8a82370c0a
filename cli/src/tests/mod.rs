//! Tests of the command line as a whole.

mod comparison;
mod documented;

use super::*;

#[test]
fn the_last_color_before_two_dashes_counts() {
    let of = |line: &str| color_flag(line.split(' ').map(OsString::from));
    assert_eq!(of("powersweep plan"), None);
    assert_eq!(of("powersweep --color never plan --color=always"), Some(ColorChoice::Always));
    assert_eq!(of("powersweep plan --color"), None);
    assert_eq!(of("powersweep plan -- --color never"), None);
    assert_eq!(of("powersweep plan --color=pink"), None);
}
