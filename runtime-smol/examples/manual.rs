//! Writes shell completions and man pages of `zcode-mail` out of its command line's definition.
//!
//! ```text
//! DIR/completions/{zcode-mail.bash,_zcode-mail,zcode-mail.fish,_zcode-mail.ps1}
//! DIR/man/man1/zcode-mail.1, zcode-mail-install.1, ...
//! ```

use std::fs;
use std::io;
use std::path::PathBuf;

use clap_complete::{Shell, generate_to};

fn main() -> io::Result<()> {
    let dir: PathBuf = std::env::args_os().nth(1).map(PathBuf::from).ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidInput, "name the directory to write to")
    })?;
    let completions = dir.join("completions");
    let pages = dir.join("man").join("man1");
    fs::create_dir_all(&completions)?;
    fs::create_dir_all(&pages)?;
    let mut command = zcode_mail_smol::cli::command();
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish, Shell::PowerShell] {
        generate_to(shell, &mut command, "zcode-mail", &completions)?;
    }
    clap_mangen::generate_to(command, &pages)
}
