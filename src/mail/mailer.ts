import type { Config } from '../../schema/config.ts'
import { isLoopback } from '../config/rules.ts'
import type { Metrics } from '../http/metrics.ts'
import type { Log } from '../log.ts'
import type { Redacted } from '../redacted.ts'

export interface Mail {
  to: string
  subject: string
  text: string
}

export interface Mailer {
  /**
   * Begins to send, where `smtp.url` is set; nobody waits for it. A failure is a line in the log and a count.
   *
   * @param about ids for the log: `{ invite_id }`
   */
  send(mail: Mail, about: Record<string, string>): void
  /** resolves when everything is sent or given up; at shutdown */
  close(): Promise<void>
}

/** For the whole of it: name look-up, TLS, login and delivery. */
const DEADLINE_MS = 10_000

export function createMailer(options: {
  smtp: Config['smtp']
  password: Redacted<string> | undefined
  log: Log
  metrics: Pick<Metrics, 'mail'>
  deadlineMs?: number
}): Mailer {
  const { smtp, password, log, metrics, deadlineMs = DEADLINE_MS } = options
  const underWay = new Set<Promise<void>>()

  async function attempt(mail: Mail, about: Record<string, string>): Promise<void> {
    try {
      await withinDeadline(deadlineMs, (signal) => deliver(smtp, password, mail, signal))
      metrics.mail('sent')
      log.info('mail_sent', about)
    } catch (error) {
      metrics.mail('failed')
      // Its message may quote what the server said, addresses included.
      const { code, command, responseCode } = error as Record<string, unknown>
      log.error('mail_failed', {
        ...about,
        code,
        command,
        responseCode,
        fix: 'check [smtp]; the link is in the answer',
      })
    }
  }

  return {
    send(mail, about) {
      if (smtp.url === '') return
      const sending = attempt(mail, about).finally(() => underWay.delete(sending))
      underWay.add(sending)
    },
    async close() {
      await Promise.all(underWay)
    },
  }
}

/** The library's own timeouts are one for each phase, and start again with each line that arrives. */
async function withinDeadline(ms: number, work: (signal: AbortSignal) => Promise<void>): Promise<void> {
  const over = Promise.withResolvers<never>()
  const controller = new AbortController()
  const timer = setTimeout(() => {
    controller.abort()
    over.reject(Object.assign(new Error('the mail server took too long'), { code: 'DEADLINE' }))
  }, ms)
  try {
    await Promise.race([work(controller.signal), over.promise])
  } finally {
    clearTimeout(timer)
  }
}

async function deliver(
  { url: text, from }: Config['smtp'],
  password: Redacted<string> | undefined,
  { to, subject, text: body }: Mail,
  signal: AbortSignal,
): Promise<void> {
  const url = new URL(text)
  const host = url.hostname.replace(/^\[|\]$/g, '')
  const isTls = url.protocol === 'smtps:'
  const { createTransport } = await import('nodemailer')
  const transport = createTransport({
    host,
    port: Number(url.port) || (isTls ? 465 : 587),
    secure: isTls,
    // The link in the mail is as good as a key: it does not cross a network in clear (IN-8).
    ...(isLoopback(host) ? { ignoreTLS: true } : { requireTLS: true }),
    ...(url.username !== '' && {
      auth: { user: decodeURIComponent(url.username), pass: password?.reveal() ?? '' },
    }),
    connectionTimeout: DEADLINE_MS,
    disableFileAccess: true,
    disableUrlAccess: true,
  })
  await transport.sendMail({ from, to: { name: '', address: to }, subject, text: body, signal })
}
