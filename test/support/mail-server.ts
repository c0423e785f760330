import type { Socket } from 'bun'

export interface MailServer {
  port: number
  /** every line that clients sent, in order */
  lines: string[]
  /** resolves with the whole of the next mail that arrives */
  nextMail(): Promise<string>
  stop(): void
}

/**
 * Just enough of a mail server (RFC 5321), without TLS.
 *
 * @param options.silent   accepts connections and never says a word
 * @param options.password offers AUTH PLAIN and takes this one alone
 * @param options.hostname to listen on, 127.0.0.1 by default
 */
export function startMailServer(options: { silent?: boolean; password?: string; hostname?: string } = {}): MailServer {
  const lines: string[] = []
  const waiting: ((mail: string) => void)[] = []
  const server = Bun.listen<{ rest: string; mail: string[] | undefined }>({
    hostname: options.hostname ?? '127.0.0.1',
    port: 0,
    socket: {
      open(socket) {
        socket.data = { rest: '', mail: undefined }
        if (!options.silent) socket.write('220 test ESMTP\r\n')
      },
      data(socket, bytes) {
        const [rest = '', ...whole] = (socket.data.rest + bytes.toString()).split('\r\n').reverse()
        socket.data.rest = rest
        for (const line of whole.reverse()) if (!options.silent) take(socket, line)
      },
    },
  })

  function take(socket: Socket<{ rest: string; mail: string[] | undefined }>, line: string): void {
    const { data } = socket
    if (data.mail !== undefined) {
      if (line !== '.') return void data.mail.push(line)
      waiting.shift()?.(data.mail.join('\n'))
      data.mail = undefined
      socket.write('250 taken\r\n')
      return
    }
    lines.push(line)
    const [verb = ''] = line.toUpperCase().split(' ')
    if (verb === 'DATA') data.mail = []
    socket.write(`${replyTo(verb, line)}\r\n`)
  }

  function replyTo(verb: string, line: string): string {
    if (verb === 'EHLO') return options.password === undefined ? '250 test' : '250-test\r\n250 AUTH PLAIN'
    if (verb === 'STARTTLS') return '502 not here'
    if (verb === 'DATA') return '354 go on'
    if (verb === 'QUIT') return '221 bye'
    if (verb !== 'AUTH') return '250 ok'
    const [, , password] = Buffer.from(line.split(' ')[2] ?? '', 'base64')
      .toString()
      .split('\0')
    return password === options.password ? '235 welcome' : '535 no'
  }

  return {
    port: server.port,
    lines,
    nextMail: () => new Promise((resolve) => waiting.push(resolve)),
    stop: () => server.stop(true),
  }
}
