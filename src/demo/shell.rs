//! Looking around in the demo's world: it stays up, and a shell can be opened in any city.

use super::mesh::Mesh;
use super::stage::Stage;
use lab::{Roster, World};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

/// Where the sockets of the daemons are, beside the roster of the world.
#[derive(Debug, Serialize, Deserialize)]
struct Sockets(BTreeMap<String, PathBuf>);

/// The folder that tells other processes of this user where the world is.
fn folder() -> PathBuf {
    let base = std::env::var_os("XDG_RUNTIME_DIR").map_or_else(std::env::temp_dir, PathBuf::from);
    base.join(format!("viamesh-demo-{}", nix::unistd::getuid()))
}

/// Keeps the world until a line, or the end of the input, comes.
pub(super) fn keep(world: &World, mesh: &Mesh, stage: &Stage) -> Result<(), String> {
    let folder = folder();
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    world.publish(&folder.join("roster.json")).map_err(|error| error.to_string())?;
    let sockets =
        Sockets(mesh.names().map(|name| (name.to_owned(), mesh.node(name).socket.clone())).collect());
    let text = serde_json::to_string(&sockets).map_err(|error| error.to_string())?;
    std::fs::write(folder.join("sockets.json"), text)
        .map_err(|error| format!("{}: {error}", folder.display()))?;
    stage.title("The world stays up. In another terminal: viamesh demo shell tokyo");
    stage.remark("there: viamesh status, viamesh routes, viamesh trace 10.1.0.1, ping, tcpdump -i viamesh0");
    let page = mesh.node("tokyo").config.with_file_name("page.sock");
    match super::window::open(page) {
        Ok(address) => stage.remark(&format!("Tokyo's page, in a browser: http://{address}/")),
        Err(error) => stage.remark(&format!("the page cannot be shown: {error}")),
    }
    stage.remark("press Enter to take it down");
    let mut line = String::new();
    let _ = std::io::stdin().read_line(&mut line);
    let _ = std::fs::remove_dir_all(&folder);
    Ok(())
}

/// Opens a shell in a city of a demo that is kept up. Returns only on failure.
///
/// # Errors
/// When no demo runs, it has no such city, or the shell cannot be started.
pub fn shell(city: &str) -> Result<(), String> {
    let folder = folder();
    let no_demo = "no demo is kept up: run `cargo demo --keep` in another terminal";
    let roster = Roster::read(&folder.join("roster.json")).map_err(|_| no_demo.to_owned())?;
    let text = std::fs::read_to_string(folder.join("sockets.json")).map_err(|_| no_demo.to_owned())?;
    let sockets: Sockets =
        serde_json::from_str(&text).map_err(|error| format!("the demo's files: {error}"))?;
    roster.enter(city).map_err(|error| error.to_string())?;
    let program = std::env::var_os("SHELL").unwrap_or_else(|| "/bin/sh".into());
    let mut command = Command::new(&program);
    command.env("PS1", format!("{city}$ "));
    if let Some(socket) = sockets.0.get(city) {
        command.env("VIAMESH_SOCKET", socket);
    }
    if let Ok(binary) = std::env::current_exe()
        && let Some(directory) = binary.parent()
    {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut directories = vec![directory.to_owned()];
        directories.extend(std::env::split_paths(&path));
        if let Ok(path) = std::env::join_paths(directories) {
            command.env("PATH", path);
        }
    }
    Err(format!("cannot start {}: {}", program.display(), command.exec()))
}
