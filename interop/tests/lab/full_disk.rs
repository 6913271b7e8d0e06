//! A full disk degrades, with a message.

use crate::scene::{Internet, QUICK, Scene, binary};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use viamesh::demo::Mesh;

/// A program that runs the daemon where its state folder is on a full disk, in a mount namespace of its own.
fn on_a_full_disk(directory: &Path) -> std::path::PathBuf {
    let state = directory.join("mesh").join("alpha").join("state");
    let script = directory.join("viamesh-on-a-full-disk");
    let text = format!(
        "#!/bin/sh\nset -e\nexec unshare --mount sh -c '\n\
         mount -t tmpfs -o size=4k tmpfs {state}\n\
         head -c 4096 /dev/zero > {state}/ballast || true\n\
         exec {binary} \"$@\"' sh \"$@\"\n",
        state = state.display(),
        binary = binary().display()
    );
    std::fs::write(&script, text).unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    script
}

#[test]
fn a_full_disk_is_told_and_harms_no_tunnel() {
    let internet = Internet::new(&["alpha", "bravo"], 10);
    let directory = internet.world.directory().to_owned();
    let program = on_a_full_disk(&directory);
    let members: Vec<_> =
        internet.sites.iter().map(|site| (site.host.clone(), site.node().with(QUICK))).collect();
    // The same program for both: bravo has no folder of that name, and so a full disk elsewhere.
    let mut mesh = Mesh::prepare(&directory.join("mesh"), &program, &members).unwrap();
    mesh.start().unwrap();
    let mut scene = Scene { mesh, internet };
    scene.mesh.wait_connected(crate::scene::PATIENCE).unwrap();
    scene.wait("a message about the disk", || {
        let status = scene.mesh.status("alpha").unwrap();
        status
            .problems
            .iter()
            .any(|problem| problem.code.starts_with("disk/") && !problem.next_step.is_empty())
    });
    assert!(scene.log("alpha").contains("No space left"), "{}", scene.log("alpha"));
    scene.ping("alpha", scene.address("bravo"));
    scene.mesh.stop("alpha").unwrap();
}
