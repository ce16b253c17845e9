//! Durability as a caller sees it: what a reader finds after kills, cuts, flips, failures and full disks.

mod child;
mod faults;
mod frames;
mod lock;
mod map;
mod new_file;
mod publish;
mod sealed;
