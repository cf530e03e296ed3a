//! Laws first; then kills, hosts, permissions, damage, the heap, and C.

mod c;
mod damage;
mod drill;
mod heap;
mod hosts;
mod kill;
mod laws;
mod lost;
