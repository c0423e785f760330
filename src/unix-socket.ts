import { lstatSync, unlinkSync } from 'node:fs'

/** Whether a process answers at a unix socket. */
export const isAnswered = async (path: string): Promise<boolean> => (await connectFault(path)) === undefined

/**
 * Removes a socket that a killed server left: only when nobody answers there any more, and nothing that is no socket
 * (SH-5).
 *
 * @returns whether something is left at the path
 */
export async function removeStaleSocket(path: string): Promise<boolean> {
  const found = lstatSync(path, { throwIfNoEntry: false })
  if (found === undefined) return false
  if (!found.isSocket() || (await connectFault(path)) !== 'ECONNREFUSED') return true
  unlinkSync(path)
  return false
}

/** Makes a socket that its owner alone can connect to, from its first moment on. */
export function ownerOnly<T>(listen: () => T): T {
  const before = process.umask(0o177)
  try {
    return listen()
  } finally {
    process.umask(before)
  }
}

async function connectFault(path: string): Promise<string | undefined> {
  try {
    const socket = await Bun.connect({ unix: path, socket: { data() {} } })
    socket.end()
    return undefined
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? 'UNKNOWN'
  }
}
