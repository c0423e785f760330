/** Set by the build, which so leaves out what only the sources need. */
declare const GATEHOUSE_COMMIT: string | undefined

/**
 * Starts one of the Workers in this folder, each a further entry point of the build. In the executable it goes by its
 * name there: a `URL` made from `import.meta` points at the build machine (decision 2).
 */
export const startWorker = (name: 'reader' | 'verify'): Worker =>
  new Worker(
    typeof GATEHOUSE_COMMIT === 'undefined'
      ? new URL(`./${name}.worker.ts`, import.meta.url).href
      : `./audit/${name}.worker.ts`,
    { env: {} },
  )
