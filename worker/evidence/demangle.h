/*
 * Symbols as people know them: Rust's legacy and v0 mangling, and C++'s.
 *
 * The wall around libiberty's demanglers (pkg libiberty-dev).  A symbol comes from a binary under test: a few bytes of
 * v0 mangling can stand for more text than there is memory, so what comes out is cut off at DEMANGLE_MAX and never
 * costs more.
 */
#ifndef BISECTD_WORKER_EVIDENCE_DEMANGLE_H
#define BISECTD_WORKER_EVIDENCE_DEMANGLE_H

enum { DEMANGLE_MAX = 32 << 10 }; /* bytes; longer names stay mangled */

/*
 * "reproducer::serial_task::{{closure}}" of
 * "_ZN10reproducer11serial_task28_$u7b$$u7b$closure$u7d$$u7d$17h0123456789abcdefE", without the hash.  A symbol that is
 * not mangled, or that cannot be read, is returned as it is.  Owned by the caller.
 */
char *demangle(const char *symbol) __attribute__((returns_nonnull));

#endif
