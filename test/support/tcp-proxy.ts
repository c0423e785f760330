import { connect, createServer, type Server, type Socket } from 'node:net'

export interface TcpProxy {
  port: number
  /**
   * Cuts everything that goes through, and what comes later: `closed` ends connections and refuses new ones; `silent`
   * keeps them open, and nothing passes any more, as behind a firewall that has forgotten them.
   */
  cut(how: 'closed' | 'silent'): void
  /** lets new connections through again; of those that fell silent only their end is passed on, nothing that was said */
  mend(): void
  /** lets through what was held back, too: an outage that connections outlive */
  resume(): void
  stop(): void
}

interface Connection {
  near: Socket
  far: Socket
}

/** A way to a server on this machine that can be cut. */
export async function startTcpProxy(toPort: number): Promise<TcpProxy> {
  let state: 'open' | 'closed' | 'silent' = 'open'
  const connections = new Set<Connection>()
  const server = createServer((near) => {
    if (state === 'closed') return void near.destroy()
    const connection = { near, far: connect(toPort, '127.0.0.1') }
    connections.add(connection)
    for (const socket of [near, connection.far]) {
      socket.on('error', () => {})
      socket.on('close', () => drop(connection))
    }
    if (state === 'open') join(connection)
  })
  function drop(connection: Connection): void {
    connections.delete(connection)
    connection.near.destroy()
    connection.far.destroy()
  }
  const dropAll = () => connections.forEach(drop)
  return {
    port: await listen(server),
    cut(how) {
      state = how
      if (how === 'closed') return dropAll()
      for (const { near, far } of connections) for (const socket of [near, far]) socket.unpipe().pause()
    },
    mend() {
      state = 'open'
      for (const { near, far } of connections) for (const socket of [near, far]) socket.resume()
    },
    resume() {
      state = 'open'
      connections.forEach(join)
    },
    stop() {
      server.close()
      dropAll()
    },
  }
}

function join({ near, far }: Connection): void {
  near.pipe(far)
  far.pipe(near)
}
function listen(server: Server): Promise<number> {
  const { promise, resolve } = Promise.withResolvers<number>()
  server.listen(0, '127.0.0.1', () => {
    const address = server.address()
    resolve(typeof address === 'object' && address !== null ? address.port : 0)
  })
  return promise
}
