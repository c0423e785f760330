import { startTrailChecks } from '../audit/scheduled-verify.ts'
import type { LoadedConfig } from '../config/load.ts'
import { openGatehouse } from '../gatehouse.ts'
import { createLog, type Log } from '../log.ts'
import { EXIT, StartError } from '../start-error.ts'
import { startAdminSocket } from './admin-socket.ts'
import { trailBroken } from './audit.ts'
import { defineCommand, type Io } from './command.ts'
import { loadFor } from './config.ts'
import { usageError } from './failure.ts'

export const serve = defineCommand({
  name: 'serve',
  summary: 'Run the server until SIGTERM or SIGINT.',
  details:
    'Logs JSON lines on standard output; the one with "event":"listening" holds the url. A second signal ends it at once.',
  flags: {
    'accept-rollback': {
      value: 'REASON',
      description:
        'start although changes are missing from the database that were made (see the audit trail in the README)',
    },
  },
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
    const acceptRollback = call.flags['accept-rollback']
    if (acceptRollback === '') throw usageError('--accept-rollback needs a reason', 'say why in a few words')
    const log = createLog({ level: loaded.config.log.level, write: io.out })
    return runServer(loaded, log, io, acceptRollback)
  },
})

async function runServer(loaded: LoadedConfig, log: Log, io: Io, acceptRollback: string | undefined): Promise<number> {
  const asked = io.stopRequested(1)
  for (const message of loaded.warnings) log.warn('config_warning', { message })
  const { gatehouse, server, admin, keySchedule, trailChecks } = await start(loaded, log, acceptRollback)
  if (!gatehouse.initialised()) log.warn('not_initialised', { fix: 'gatehouse bootstrap --org NAME --email ADDRESS' })
  const { unix_socket } = loaded.config.server
  log.info('listening', { url: server.url, ...(unix_socket !== '' && { unix_socket }), config: loaded.path })
  const fault = await Promise.race([asked.then(() => undefined), trailChecks.brokenAtStart])
  trailChecks.stop()
  log.info('stopping', { drainSeconds: loaded.config.server.drain_seconds })
  const drained = Promise.all([server.stop(), admin.stop(), keySchedule.stop()])
    .then(() => gatehouse.close())
    .then(() => EXIT.ok)
  const exitCode = await Promise.race([drained, giveUp(loaded.config.server.drain_seconds, io)])
  if (fault !== undefined) throw trailBroken(fault)
  log.info('stopped', { exitCode })
  return exitCode
}

/** Everything that serves, or nothing: what was started before a failure is stopped again. */
async function start(loaded: LoadedConfig, log: Log, acceptRollback: string | undefined) {
  await using opened = new AsyncDisposableStack()
  const options = acceptRollback === undefined ? {} : { acceptRollback }
  const gatehouse = opened.adopt(await openGatehouse(loaded, log, options), (each) => each.close())
  const admin = opened.adopt(await startAdminSocket(gatehouse), (each) => each.stop())
  const { startServer } = await import('../http/server.ts')
  const server = await startServer(gatehouse)
  const { startKeySchedule } = await import('../api-keys/schedule.ts')
  const keySchedule = startKeySchedule(gatehouse)
  opened.move()
  const trailChecks = startTrailChecks(gatehouse.trailCheck, log)
  return { gatehouse, admin, server, keySchedule, trailChecks }
}

/** Answers when the drain has taken too long, or when a second signal asks to end at once (SH-1). */
async function giveUp(seconds: number, io: Io): Promise<number> {
  const deadline = Promise.withResolvers<void>()
  setTimeout(deadline.resolve, seconds * 1000).unref()
  await Promise.race([deadline.promise, io.stopRequested(2)])
  return EXIT.drainTimedOut
}
