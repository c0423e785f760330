import { join } from 'node:path'
import type { LoadedConfig } from '../config/load.ts'
import { type Gatehouse, openGatehouse } from '../gatehouse.ts'
import { createLog } from '../log.ts'
import { EXIT, StartError } from '../start-error.ts'
import { isAnswered, ownerOnly, removeStaleSocket } from '../unix-socket.ts'
import { type AdminContext, type AdminInput, type AdminName, type AdminOutput, isAdminName, runAdmin } from './admin.ts'
import type { Io } from './command.ts'
import { type Failure, failureOf } from './failure.ts'

/** The kernel's bound on a socket's path, its end included. */
const SOCKET_PATH_BYTES = 107
const INPUT_BYTES = 65_536

type Answer = { result: unknown } | { failure: Failure }

/**
 * Takes administrative commands at `<data>/admin.sock`, mode 0600 in a 0700 folder: whoever can connect is our own
 * user or root, so the socket's owner is the actor. PostgreSQL has none, there each command does its work itself.
 *
 * @throws StartError 69 ADMIN_SOCKET_IN_USE when another process answers there, 78 DATA_DIR_TOO_LONG
 */
export async function startAdminSocket(gatehouse: Gatehouse): Promise<{ stop(): Promise<void> }> {
  if (gatehouse.dialect === 'postgres') return { stop: async () => {} }
  const path = socketPath(gatehouse.config.data.dir)
  if (Buffer.byteLength(path) > SOCKET_PATH_BYTES) {
    throw new StartError(
      'DATA_DIR_TOO_LONG',
      EXIT.config,
      'data.dir is too long for a socket in it',
      `choose a data.dir of at most ${SOCKET_PATH_BYTES - 11} bytes`,
    )
  }
  if (await removeStaleSocket(path))
    throw new StartError(
      'ADMIN_SOCKET_IN_USE',
      EXIT.unavailable,
      `another process answers at ${path}, or something else lies there`,
      'stop the other server first',
    )
  const server = ownerOnly(() =>
    Bun.serve({
      unix: path,
      development: false,
      // Some commands take longer than the 10 s that Bun gives them, at a unix socket too, which its types do not know.
      ...({ idleTimeout: 255 } as object),
      maxRequestBodySize: INPUT_BYTES,
      fetch: async (request) => Response.json(await answer({ gatehouse, uid: ownUid() }, request)),
    }),
  )
  return { stop: () => server.stop() }
}

const socketPath = (dataDir: string) => join(dataDir, 'admin.sock')

async function answer(context: AdminContext, request: Request): Promise<Answer> {
  try {
    const { command, input } = (await request.json()) as { command: string; input: unknown }
    if (!isAdminName(command))
      throw new StartError(
        'UNKNOWN_COMMAND',
        EXIT.usage,
        'the running server does not know this command',
        'use the gatehouse of the same version',
      )
    return { result: await runAdmin(context, command, input) }
  } catch (error) {
    return { failure: failureOf(error) }
  }
}

const ownUid = (): number => process.getuid?.() ?? 0

/** Runs one administrative command and gives what it answers. */
export type AdminCall = <N extends AdminName>(command: N, input: AdminInput<N>) => Promise<AdminOutput<N>>

/**
 * Runs an administrative command: in the running server where one answers, else here with the data folder's lock.
 *
 * @throws StartError as the command fails there, or 69 DATA_DIR_LOCKED
 */
export const callAdmin = <N extends AdminName>(
  loaded: LoadedConfig,
  io: Io,
  command: N,
  input: AdminInput<N>,
): Promise<AdminOutput<N>> => withAdmin(loaded, io, (call) => call(command, input))

/** Runs several of them in one place; without a server nobody else gets in between. */
export async function withAdmin<T>(loaded: LoadedConfig, io: Io, work: (call: AdminCall) => Promise<T>): Promise<T> {
  const { config } = loaded
  const path = socketPath(config.data.dir)
  if (config.database.url === '' && (await isAnswered(path)))
    return work(((command, input) => callServer(path, command, input)) as AdminCall)
  const gatehouse = await openGatehouse(loaded, createLog({ level: 'warn', write: io.err }))
  try {
    return await work(((command, input) => runAdmin({ gatehouse, uid: ownUid() }, command, input)) as AdminCall)
  } finally {
    await gatehouse.close()
  }
}

async function callServer(path: string, command: string, input: unknown): Promise<unknown> {
  const response = await fetch('http://localhost/', {
    unix: path,
    method: 'POST',
    body: JSON.stringify({ command, input }),
  })
  const answered = (await response.json()) as Answer
  if ('result' in answered) return answered.result
  const { code, exitCode, message, fix } = answered.failure
  throw new StartError(code, exitCode, message, fix)
}
