/**
 * Imported by main.ts, for its effect: a process that dies leaves no copy of its memory, which holds secrets in clear
 * (decision 42). Children inherit it. The unit of install.sh says so as well; this holds wherever the program is started.
 */
import { dlopen, FFIType, ptr } from 'bun:ffi'
import { writeFileSync } from 'node:fs'

const RLIMIT_CORE = 4
const LIBRARIES = [
  'libc.so.6',
  `libc.musl-${process.arch === 'arm64' ? 'aarch64' : 'x86_64'}.so.1`,
  'libSystem.B.dylib',
]

function limitCoreSize(): void {
  for (const library of LIBRARIES) {
    try {
      const { symbols } = dlopen(library, { setrlimit: { args: [FFIType.i32, FFIType.ptr], returns: FFIType.i32 } })
      // soft and hard limit, both 0
      symbols.setrlimit(RLIMIT_CORE, ptr(new BigUint64Array(2)))
      return
    } catch {
      // not the C library of this system
    }
  }
}

/** Where a program takes core dumps, the limit does not count; then they hold no memory of ours. */
function emptyCores(): void {
  try {
    writeFileSync('/proc/self/coredump_filter', '0')
  } catch {
    // another system
  }
}

limitCoreSize()
emptyCores()
