import { afterEach, describe, expect, test } from 'bun:test'
import { networkInterfaces } from 'node:os'
import { createLog } from '../../src/log.ts'
import { createMailer } from '../../src/mail/mailer.ts'
import { Redacted } from '../../src/redacted.ts'
import { type MailServer, startMailServer } from '../support/mail-server.ts'

let server: MailServer | undefined
afterEach(() => server?.stop())

const mail = { to: 'new@example.org', subject: 'Welcome', text: 'https://example.com/invite#secret-token' }

/** Sends one mail and waits until it is sent or given up. */
async function send(url: string, password?: string, deadlineMs = 2000) {
  const outcomes: string[] = []
  const lines: string[] = []
  const mailer = createMailer({
    smtp: { url, password: '', from: 'gatehouse@example.com' },
    password: password === undefined ? undefined : new Redacted(password),
    log: createLog({ level: 'debug', write: (line) => void lines.push(line) }),
    metrics: { mail: (outcome) => void outcomes.push(outcome) },
    deadlineMs,
  })
  const startedAt = performance.now()
  mailer.send(mail, { invite_id: 'i-1' })
  await mailer.close()
  return { outcomes, log: lines.join(''), tookMs: performance.now() - startedAt }
}

test('a mail arrives as it was written, from whom the settings say', async () => {
  server = startMailServer()
  const arrived = server.nextMail()
  const { outcomes, log } = await send(`smtp://127.0.0.1:${server.port}`)
  expect(outcomes).toEqual(['sent'])
  expect(server.lines).toContain('MAIL FROM:<gatehouse@example.com>')
  expect(server.lines).toContain('RCPT TO:<new@example.org>')
  const text = await arrived
  expect(text).toContain('Subject: Welcome')
  expect(text).toContain('https://example.com/invite#secret-token')
  expect(log).toContain('"event":"mail_sent"')
  expect(log).toContain('i-1')
  expect(log).not.toContain('secret-token')
})

test('the user of the URL logs in with the password behind the reference', async () => {
  server = startMailServer({ password: 'p w' })
  expect((await send(`smtp://me%40example.com@127.0.0.1:${server.port}`, 'p w')).outcomes).toEqual(['sent'])
  const { outcomes, log } = await send(`smtp://me@127.0.0.1:${server.port}`, 'wrong')
  expect(outcomes).toEqual(['failed'])
  expect(log).toContain('"responseCode":535')
  expect(log).not.toContain('wrong')
})

describe('a failure is a line and a count, and over soon', () => {
  test('a server that never says a word', async () => {
    server = startMailServer({ silent: true })
    const { outcomes, log, tookMs } = await send(`smtp://127.0.0.1:${server.port}`, undefined, 200)
    expect(outcomes).toEqual(['failed'])
    expect(log).toMatch(/"event":"mail_failed".*"code":"DEADLINE"/)
    expect(tookMs).toBeLessThan(1500)
  })

  test('no server', async () => {
    server = startMailServer()
    server.stop()
    const { outcomes, log } = await send(`smtp://127.0.0.1:${server.port}`)
    expect(outcomes).toEqual(['failed'])
    expect(log).toMatch(/"event":"mail_failed".*"command":"CONN"/)
  })
})

const elsewhere = Object.values(networkInterfaces())
  .flat()
  .find((each) => each?.family === 'IPv4' && !each.internal)?.address

test.skipIf(elsewhere === undefined)('nothing crosses a network in clear', async () => {
  server = startMailServer({ hostname: elsewhere ?? '', password: 'p' })
  const { outcomes, log } = await send(`smtp://me@${elsewhere}:${server.port}`, 'p')
  expect(outcomes).toEqual(['failed'])
  expect(log).toContain('"code":"ETLS"')
  expect(server.lines.filter((line) => /^(?:AUTH|MAIL|DATA)/.test(line))).toEqual([])
})

test('without a server in the settings nothing is tried', async () => {
  expect((await send('')).outcomes).toEqual([])
})
