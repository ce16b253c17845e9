//! The folder that `--data` names: why it cannot be what a command needs.

use std::io::ErrorKind;
use std::path::Path;

use anyhow::Context;

/// Refuses a folder that cannot hold an index to read, and says what it is instead.
pub(crate) fn check_readable(data: &Path) -> anyhow::Result<()> {
    let shown = data.display();
    let metadata = match std::fs::metadata(data) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            anyhow::bail!(
                "{shown}: no index here: there is no such folder; `tamis ct import` makes one, `--data DIR` names another folder"
            )
        }
        metadata => metadata.with_context(|| format!("look at {shown}"))?,
    };
    anyhow::ensure!(
        metadata.is_dir(),
        "{shown}: no index here: it is a file; `--data DIR` names the folder of an index, `tamis ct inspect {shown}` tells what the file is"
    );
    let mut files = std::fs::read_dir(data).with_context(|| format!("list {shown}"))?;
    anyhow::ensure!(
        files.next().is_some(),
        "{shown}: no index here: the folder is empty; `tamis ct import` makes one, `--data DIR` names another folder"
    );
    Ok(())
}

/// Refuses a path that cannot become the folder of an index.
pub(crate) fn check_writable(data: &Path) -> anyhow::Result<()> {
    let shown = data.display();
    // The nearest thing on the way that exists; the folders below it are made.
    let existing = data.ancestors().find(|path| path.exists());
    if let Some(file) = existing.filter(|path| !path.is_dir()) {
        anyhow::bail!(
            "{shown} cannot be the folder of an index: {} is a file; name another with --data DIR",
            file.display()
        );
    }
    let Ok(files) = std::fs::read_dir(data) else {
        return Ok(());
    };
    let names: Vec<_> = files.flatten().map(|file| file.file_name()).collect();
    if !names.is_empty()
        && !names
            .iter()
            .any(|name| name == "MANIFEST" || name == "MANIFEST.copy" || name == "wal")
    {
        talk!("note: {shown} holds other files and no index yet; one is made beside them");
    }
    Ok(())
}
