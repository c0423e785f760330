/**
 * Starts one of the Workers in this folder, each a further entry point of the build. In the executable it goes by its
 * name there: a `URL` made from `import.meta` points at the build machine (decision 2).
 */
export const startWorker = (name: 'reader' | 'verify'): Worker =>
  new Worker(
    Bun.main.startsWith('/$bunfs/')
      ? `./audit/${name}.worker.ts`
      : new URL(`./${name}.worker.ts`, import.meta.url).href,
    { env: {} },
  )
