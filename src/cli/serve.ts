import type { LoadedConfig } from '../config/load.ts'
import { openGatehouse } from '../gatehouse.ts'
import { createLog, type Log } from '../log.ts'
import { EXIT, StartError } from '../start-error.ts'
import { startAdminSocket } from './admin-socket.ts'
import { defineCommand, type Io } from './command.ts'
import { loadFor } from './config.ts'

export const serve = defineCommand({
  name: 'serve',
  summary: 'Run the server until SIGTERM or SIGINT.',
  details:
    'Logs JSON lines on standard output; the one with "event":"listening" holds the url. A second signal ends it at once.',
  flags: {},
  showsSettings: true,
  async run(call) {
    const { io } = call
    // Bun ignores a socket handed over and would listen somewhere else (SH-4)
    if (io.env['LISTEN_FDS'])
      throw new StartError(
        'SOCKET_ACTIVATION',
        EXIT.config,
        'socket activation is not supported',
        'remove the .socket unit and set server.host and server.port',
      )
    const loaded = loadFor(call)
    return runServer(loaded, createLog({ level: loaded.config.log.level, write: io.out }), io)
  },
})

async function runServer(loaded: LoadedConfig, log: Log, io: Io): Promise<number> {
  const asked = io.stopRequested(1)
  for (const message of loaded.warnings) log.warn('config_warning', { message })
  const { gatehouse, server, admin } = await start(loaded, log)
  if (!gatehouse.initialised()) log.warn('not_initialised', { fix: 'gatehouse bootstrap --org NAME --email ADDRESS' })
  log.info('listening', { url: server.url, config: loaded.path })
  await asked
  log.info('stopping', { drainSeconds: loaded.config.server.drain_seconds })
  const drained = Promise.all([server.stop(), admin.stop()])
    .then(() => gatehouse.close())
    .then(() => EXIT.ok)
  const exitCode = await Promise.race([drained, giveUp(loaded.config.server.drain_seconds, io)])
  log.info('stopped', { exitCode })
  return exitCode
}

/** Everything that serves, or nothing: what was started before a failure is stopped again. */
async function start(loaded: LoadedConfig, log: Log) {
  await using opened = new AsyncDisposableStack()
  const gatehouse = opened.adopt(await openGatehouse(loaded, log), (each) => each.close())
  const admin = opened.adopt(await startAdminSocket(gatehouse), (each) => each.stop())
  const { startServer } = await import('../http/server.ts')
  const server = await startServer(gatehouse)
  opened.move()
  return { gatehouse, admin, server }
}

/** Answers when the drain has taken too long, or when a second signal asks to end at once (SH-1). */
async function giveUp(seconds: number, io: Io): Promise<number> {
  const deadline = Promise.withResolvers<void>()
  setTimeout(deadline.resolve, seconds * 1000).unref()
  await Promise.race([deadline.promise, io.stopRequested(2)])
  return EXIT.drainTimedOut
}
