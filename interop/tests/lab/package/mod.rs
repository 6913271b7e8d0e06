//! The Debian package in clean file systems of Debian 12 and 13: installed, started, upgraded, purged.

use crate::scene::{PATIENCE, binary};
use lab::peers::Release;
use lab::{Host, World};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Enters a copy of a root that is thrown away: writes go to a layer of their own.
const ENTER: &str = r#"
set -e
root=$1; layers=$2; packages=$3
mkdir -p "$layers/upper" "$layers/work" "$layers/merged"
mount -t overlay overlay -o "lowerdir=$root,upperdir=$layers/upper,workdir=$layers/work" "$layers/merged"
cd "$layers/merged"
mount --rbind /dev dev
mount --rbind /sys sys
mount -t proc proc proc
mount -t tmpfs tmpfs run
mkdir -p packages
mount --bind "$packages" packages
exec chroot . sh /packages/scenario.sh /packages/first.deb /packages/next.deb
"#;

/// The package that `cargo xtask deb` built.
fn package() -> PathBuf {
    let target = binary().parent().and_then(Path::parent).unwrap().to_owned();
    let folder = target.join("debian");
    let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let newest = entries
        .filter(|path| path.extension().is_some_and(|extension| extension == "deb"))
        .max_by_key(|path| path.metadata().and_then(|metadata| metadata.modified()).unwrap());
    newest.unwrap_or_else(|| panic!("no package in {}: `cargo xtask deb --dev` makes it", folder.display()))
}

/// The same package with a higher version.
fn next_version(host: &Host, package: &Path, folder: &Path) {
    let script = r#"
        dpkg-deb -R "$1" "$2/unpacked"
        sed -i 's/^Version: .*/&+next/' "$2/unpacked/DEBIAN/control"
        dpkg-deb -Zgzip -z1 -b "$2/unpacked" "$2/next.deb"
        rm -r "$2/unpacked"
    "#;
    let mut command = Command::new("sh");
    command.args(["-ec", script, "sh"]).arg(package).arg(folder);
    host.run(command, PATIENCE).unwrap().successful().unwrap();
}

#[test]
fn the_debian_package_lives_and_dies_well() {
    let world = World::new().unwrap();
    let packages = world.directory().join("packages");
    std::fs::create_dir_all(&packages).unwrap();
    std::fs::copy(package(), packages.join("first.deb")).unwrap();
    std::fs::write(packages.join("scenario.sh"), include_str!("scenario.sh")).unwrap();
    let releases = [("bookworm", Release::Debian12), ("trixie", Release::Debian13)];
    next_version(&world.host("builder").unwrap(), &packages.join("first.deb"), &packages);
    std::thread::scope(|scope| {
        for (name, release) in releases {
            let (world, packages) = (&world, &packages);
            scope.spawn(move || {
                let root = release.path();
                assert!(root.is_dir(), "{} is missing: `cargo xtask setup` makes it", root.display());
                let layers = world.directory().join(name);
                let mut command = Command::new("unshare");
                command.args(["--mount", "--", "sh", "-c", ENTER, "sh"]).arg(root).arg(layers).arg(packages);
                let output = world.host(name).unwrap().run(command, PATIENCE).unwrap();
                assert!(output.status.success(), "{name}:\n{}\n{}", output.stdout, output.stderr);
                assert!(output.stdout.ends_with("== done\n"), "{}", output.stdout);
            });
        }
    });
}
