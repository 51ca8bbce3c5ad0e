#!/usr/bin/env node
// The smallest sidecar that conforms: it lets every intercept continue.
import { stdin, stdout } from 'node:process'

const LIMIT = 8 * 1024 * 1024 // with the line feed
let version = null
let ready = false

class Refusal extends Error {
  constructor(code, reason, retryable) {
    super(reason)
    this.error = { code, message: reason, data: { reason, retryable } }
  }
}
const bad = () => new Refusal(-32602, 'invalid_params', false)

const methods = {
  'extension/initialize'(params) {
    const major = /^reasonix\.extension\.v([12])$/.exec(params.protocolId)?.[1]
    if (!major || params.protocolVersion !== major) throw new Refusal(-32000, 'unsupported_version', false)
    version = major
    return {
      protocolVersion: major, name: 'my-sidecar', version: '0.1.0', stateSchemaVersion: 1,
      subscriptions: params.manifest?.intercepts ?? [], replaces: [], providers: [], uiActions: [],
    }
  },
  'extension/intercept'(params) {
    for (const name of ['event', 'payload', 'seq', 'timeoutMillis']) if (!(name in params)) throw bad()
    return { decision: 'continue' }
  },
  'extension/provider/catalog': () => ({ providers: [] }),
  'extension/provider/stream/cancel'(params) {
    if (typeof params.streamId !== 'string') throw bad()
    return { cancelled: false }
  },
  'extension/shutdown': () => ({ accepted: true }),
}

function answer(line) {
  let frame
  try {
    frame = JSON.parse(line)
  } catch {
    return write('null', { error: { code: -32700, message: 'no JSON' } })
  }
  const id = /"id"\s*:\s*(-?\d+)\s*[,}]/.exec(line)?.[1] ?? 'null'
  if (frame?.jsonrpc !== '2.0' || typeof frame.method !== 'string') {
    if (frame && !('method' in frame) && ('result' in frame || 'error' in frame)) return
    return write(id, { error: { code: -32600, message: 'no request' } })
  }
  if (!('id' in frame)) {
    if (frame.method === 'extension/initialized') ready = version !== null
    return
  }
  if (frame.id !== null && !Number.isInteger(frame.id)) {
    return write('null', { error: { code: -32600, message: 'the id is no integer' } })
  }
  try {
    const early = frame.method !== 'extension/initialize' && frame.method !== 'extension/shutdown'
    if (early && !ready) throw new Refusal(-32600, 'protocol_error', false)
    const method = Object.hasOwn(methods, frame.method) && methods[frame.method]
    if (!method) throw new Refusal(-32601, 'unknown_method', false)
    write(id, { result: method(frame.params ?? {}) })
  } catch (refusal) {
    write(id, { error: refusal.error ?? new Refusal(-32603, 'internal', true).error })
  }
}

function write(id, rest) {
  stdout.write(`{"jsonrpc":"2.0","id":${id},${JSON.stringify(rest).slice(1)}\n`)
}

let chunks = []
let length = 0
stdin.on('data', (chunk) => {
  for (let at; (at = chunk.indexOf(10)) >= 0; chunk = chunk.subarray(at + 1)) {
    chunks.push(chunk.subarray(0, at))
    if (length + at + 1 > LIMIT) process.exit(1)
    const line = Buffer.concat(chunks).toString()
    chunks = []
    length = 0
    if (line.trim()) answer(line)
  }
  chunks.push(chunk)
  length += chunk.length
  if (length >= LIMIT) process.exit(1)
})
stdin.on('end', () => stdout.end())
