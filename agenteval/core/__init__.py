"""Immutable values, the interfaces between packages, and pure functions that process text. No module in this
package accesses a file, the clock or the network."""
