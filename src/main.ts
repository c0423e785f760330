import './scrub-environment.ts'
import './forbid-core-dumps.ts'
import type { Io } from './cli/command.ts'
import { runCli } from './cli/run.ts'
import { createLog, describeError } from './log.ts'
import { EXIT } from './start-error.ts'

// everything that we create is ours alone; wider modes are set where they are meant
process.umask(0o077)

// Bun goes on serving after an unhandled rejection (OB-4): a half-broken server is worse than a restart
process.on('unhandledRejection', (error) => crash('unhandled_rejection', error))
process.on('uncaughtException', (error) => crash('uncaught_exception', error))

runCli(process.argv.slice(2), createIo()).then(exit)

/** `process.exit` drops what a pipe has not taken yet (64 KiB of a longer output arrived); a reader that sleeps gets 2 s. */
function exit(exitCode: number): void {
  setTimeout(() => process.exit(exitCode), 2000)
  process.stdout.end(() => process.exit(exitCode))
}

function crash(event: string, error: unknown): void {
  createLog({ level: 'error', write: (line) => void process.stderr.write(line) }).error(event, {
    error: describeError(error),
  })
  process.exit(EXIT.internal)
}

function createIo(): Io {
  const requested = [Promise.withResolvers<void>(), Promise.withResolvers<void>()] as const
  let count = 0
  return {
    out: (text) => void process.stdout.write(text),
    err: (text) => void process.stderr.write(text),
    isTerminal: process.stdout.isTTY === true,
    env: process.env,
    stopRequested(which) {
      // until a command waits for signals they keep their usual effect
      if (process.listenerCount('SIGTERM') === 0) {
        for (const signal of ['SIGTERM', 'SIGINT'] as const)
          process.on(signal, () => requested[count++ === 0 ? 0 : 1].resolve())
        // Its usual effect would be to end a server that somebody only wants to read its settings again.
        process.on(
          'SIGHUP',
          () => void process.stderr.write('SIGHUP: settings are read at start; restart to change them\n'),
        )
      }
      return requested[which === 1 ? 0 : 1].promise
    },
  }
}
