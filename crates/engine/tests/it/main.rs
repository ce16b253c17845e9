//! Following simulated logs: real trees and signatures over real sockets, with everything that goes wrong.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::panic)]

mod archives;
mod faults;
mod honest;
mod lies;
mod lists;
mod pressure;
mod roots;
mod run;
