//! Following simulated logs: real trees and signatures over real sockets, with everything that goes wrong.

mod archives;
mod faults;
mod honest;
mod lies;
mod lists;
mod pressure;
mod roots;
mod run;
