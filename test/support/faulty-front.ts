import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import { connect, type Socket } from 'node:net'
import { startServer, startTcp, type TestServer } from '../outbound/support.ts'
import { createAuthority } from './certificates.ts'

/** A request on its way to a server; what is changed of it goes on changed. */
export interface PassingRequest {
  method: string
  /** as the Host header names it */
  host: string
  path: string
  headers: IncomingHttpHeaders
  body: string
}

/** Answers, or fails to, in the server's place. */
export type Misbehaviour = (response: ServerResponse) => void

/** What connections come upon. */
export type Line = 'open' | 'closed' | 'silent' | 'not TLS' | 'wrong name' | 'unknown authority' | 'expired'

/** Stands before servers of this machine, under host names and a certificate of its own, and gets in their way. */
export interface FaultyFront {
  /** for `[outbound] connect` */
  connect: Record<string, string>
  /** what has to be trusted, as a `ca_file` setting */
  caFile: string
  /** asked of each request; undefined: it goes on to its server */
  instead: (request: PassingRequest) => Misbehaviour | undefined
  /** ends all connections; those to come find this */
  cut(line: Line): void
  /** the line is open, and nothing is in the way */
  mend(): void
  stop(): void
}

/** @param servers by the "host:port" of the URLs that lead to them: origins of this machine, TLS or not */
export async function startFaultyFront(servers: Record<string, string>): Promise<FaultyFront> {
  const [authority, stranger] = [createAuthority(), createAuthority('Stranger')]
  const names = Object.keys(servers).map(hostOf)
  const answer = (request: IncomingMessage, response: ServerResponse) => void answered(request, response)
  const ways: Partial<Record<Line, TestServer>> = {
    open: await startServer(answer, authority.issue(names)),
    'wrong name': await startServer(answer, authority.issue(['elsewhere.example.com'])),
    'unknown authority': await startServer(answer, stranger.issue(names)),
    expired: await startServer(answer, authority.issue(names, 'expired')),
    'not TLS': await startTcp((socket) => void socket.end('SSH-2.0-OpenSSH_9.9\r\n')),
  }
  const sockets = new Set<Socket>()
  let line: Line = 'open'
  const gate = await startTcp((near) => {
    sockets.add(near)
    near.on('close', () => sockets.delete(near))
    if (line === 'closed') return void near.destroy()
    const way = ways[line]
    if (way === undefined) return
    const far = connect(way.port, '127.0.0.1')
    far.on('error', () => near.destroy())
    near.on('close', () => far.destroy())
    far.on('close', () => near.destroy())
    near.pipe(far).pipe(near)
  })

  async function answered(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = '', url: path = '', headers } = incoming
    const { host = '' } = headers
    const body = Buffer.concat(await Array.fromAsync(incoming)).toString()
    const request: PassingRequest = { method, host, path, headers, body }
    const misbehave = front.instead(request)
    if (misbehave !== undefined) return misbehave(response)
    const origin = servers[host.includes(':') ? host : `${host}:443`]
    await passOn(request, origin ?? '', response).catch(() => response.socket?.destroy())
  }

  const front: FaultyFront = {
    connect: Object.fromEntries(Object.keys(servers).map((server) => [server, `127.0.0.1:${gate.port}`])),
    caFile: authority.caFile,
    instead: () => undefined,
    cut(to) {
      line = to
      for (const socket of sockets) socket.destroy()
    },
    mend() {
      // a kept connection that ends unseen would fail its next request
      if (line !== 'open') front.cut('open')
      front.instead = () => undefined
    },
    stop() {
      for (const server of [gate, ...Object.values(ways)]) server.stop()
      authority.remove()
      stranger.remove()
    },
  }
  return front
}

const hostOf = (server: string): string => server.replace(/:\d+$/, '')

async function passOn(request: PassingRequest, origin: string, response: ServerResponse): Promise<void> {
  const { method, path, headers, body } = request
  const { connection: _, 'content-length': __, ...kept } = headers
  const answer = await fetch(`${origin}${path}`, {
    method,
    headers: kept as Record<string, string>,
    redirect: 'manual',
    decompress: false,
    // the server is ours, and its certificate for another name
    tls: { rejectUnauthorized: false },
    ...(body !== '' && { body }),
  })
  const bytes = Buffer.from(await answer.arrayBuffer())
  const { 'transfer-encoding': ___, ...told } = Object.fromEntries(answer.headers)
  response.writeHead(answer.status, { ...told, 'content-length': bytes.length })
  response.end(bytes)
}
