//! The mistakes that people make most, and how they are shown.

use super::support::{Files, alpha, registry};

#[test]
fn all_mistakes_of_a_file_in_one_run() {
    let node = alpha(
        r#"anounce: [10.1.0.0/16]
policies:
  - name: inspected
    from: [10.1.0.0/16]
    to: [10.4.0.7/16]
    via: [bravo, charly, bravo]
    exit: delta
  - name: office-web
    from: [10.1.0.0/16]
    to: [10.4.2.0/24]
    exit: delta
  - name: mixed
    from: [10.1.0.0/16]
    to: [2001:db8:d::/48]
    exit: delta
  - name: to-the-internet
    from: [10.1.0.0/16]
    to: [0.0.0.0/0]
    exit: echo
  - name: scenic
    from: [10.2.0.0/16]
    to: [10.4.0.0/16]
    via: [bravo, charlie, delta, echo, bravo, charlie]
    exit: delta
"#,
    );
    insta::assert_snapshot!(Files::new(&node, &registry()).render());
}
