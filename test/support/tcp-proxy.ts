import { connect, createServer, type Server, type Socket } from 'node:net'

export interface TcpProxy {
  port: number
  /**
   * Cuts everything that goes through, and what comes later: `closed` ends connections and refuses new ones; `silent`
   * keeps them open, and nothing passes any more, as behind a firewall that has forgotten them.
   */
  cut(how: 'closed' | 'silent'): void
  /** lets new connections through again; those that fell silent stay so */
  mend(): void
  stop(): void
}

/** A way to a server on this machine that can be cut. */
export async function startTcpProxy(toPort: number): Promise<TcpProxy> {
  let state: 'open' | 'closed' | 'silent' = 'open'
  const sockets = new Set<Socket>()
  const server = createServer((near) => {
    if (state === 'closed') return void near.destroy()
    const far = connect(toPort, '127.0.0.1')
    for (const socket of [near, far]) {
      sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => {
        sockets.delete(socket)
        for (const other of [near, far]) other.destroy()
      })
    }
    if (state === 'silent') return
    near.pipe(far)
    far.pipe(near)
  })
  const drop = () => {
    for (const socket of sockets) socket.destroy()
  }
  return {
    port: await listen(server),
    cut(how) {
      state = how
      if (how === 'closed') return drop()
      for (const socket of sockets) socket.unpipe().pause()
    },
    mend() {
      state = 'open'
    },
    stop() {
      server.close()
      drop()
    },
  }
}

function listen(server: Server): Promise<number> {
  const { promise, resolve } = Promise.withResolvers<number>()
  server.listen(0, '127.0.0.1', () => {
    const address = server.address()
    resolve(typeof address === 'object' && address !== null ? address.port : 0)
  })
  return promise
}
