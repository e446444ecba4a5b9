// Checks of node's http2: `node client.mjs CHECK URL CA`. The first thing that is not as it should be ends it.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import http2 from 'node:http2';
import { text } from 'node:stream/consumers';

const [check, url, ca] = process.argv.slice(2);
const PATTERN = Buffer.from(Array.from({ length: 1 << 20 }, (_, at) => Math.floor(at / 251) + at));
const PIECES = Buffer.concat(Array.from({ length: 64 }, (_, number) => Buffer.alloc(8192, number)));

const open = (settings = {}) => new Promise((resolve, reject) => {
  const session = http2.connect(url, { ca: readFileSync(ca), settings });
  session.once('error', reject);
  session.once('remoteSettings', () => resolve(session));
});

// The whole answer to a request that is sent.
const answer = (stream) => new Promise((resolve, reject) => {
  const got = { pieces: [] };
  stream.on('response', (headers) => { got.headers = headers; });
  stream.on('trailers', (trailers) => { got.trailers = { ...trailers }; });
  stream.on('data', (piece) => got.pieces.push(piece));
  stream.on('error', reject);
  stream.on('end', () => resolve({ ...got, status: got.headers[':status'], body: Buffer.concat(got.pieces) }));
});

const get = (session, path) => answer(session.request({ ':path': path }));

const assertServes = async (session) => {
  assert.ok((await get(session, '/size/100000')).body.equals(PATTERN.subarray(0, 100_000)));
};

const checks = {
  async requests(session) {
    for (const size of [0, 1, 16_384, 300_000]) {
      const { status, body } = await get(session, `/size/${size}`);
      assert.equal(status, 200);
      assert.ok(body.equals(PATTERN.subarray(0, size)));
    }
    const head = await answer(session.request({ ':method': 'HEAD', ':path': '/size/1000' }));
    assert.equal(head.headers['content-length'], '1000');
    assert.equal(head.body.length, 0);
    const told = await text(session.request({ ':method': 'PURGE', ':path': '/head', cookie: ['a=1', 'b=2'] }));
    assert.match(told, /^PURGE .*cookie="a=1; b=2"/);
  },

  async streamed_bodies(session) {
    const stream = session.request({ ':method': 'POST', ':path': '/echo' });
    const comes = stream[Symbol.asyncIterator]();
    for (const size of [1, 100, 5_000]) {
      stream.write(PATTERN.subarray(0, size));
      let back = Buffer.alloc(0);
      while (back.length < size) back = Buffer.concat([back, (await comes.next()).value]);
      assert.ok(back.equals(PATTERN.subarray(0, size)), 'it comes back before more is sent');
    }
    stream.end();
    assert.ok((await comes.next()).done);

    const sip = session.request({ ':method': 'POST', ':path': '/sip' });
    sip.end(PATTERN);
    assert.equal(await text(sip), `${PATTERN.length} bytes of the pattern, trailers: `);
    assert.ok((await get(session, '/pieces/64')).body.equals(PIECES));
  },

  async trailers(session) {
    assert.equal((await get(session, '/trailers')).trailers['grpc-status'], '0');
    const stream = session.request({ ':method': 'POST', ':path': '/echo' }, { waitForTrailers: true });
    stream.on('wantTrailers', () => stream.sendTrailers({ checksum: '1' }));
    stream.end('up');
    const { body, trailers } = await answer(stream);
    assert.equal(body.toString(), 'up');
    assert.equal(trailers.checksum, '1');
  },

  async continued(session) {
    const stream = session.request({ ':method': 'POST', ':path': '/upload', expect: '100-continue' });
    stream.on('continue', () => stream.end(PATTERN));
    assert.equal(await text(stream), `${PATTERN.length} bytes of the pattern, trailers: `);
  },

  async downloads(first) {
    const sessions = [first, await open(), await open(), await open()];
    const asked = sessions.flatMap((session) => Array.from({ length: 10 }, () => get(session, '/size/262144')));
    for (const { body } of await Promise.all(asked)) assert.ok(body.equals(PATTERN.subarray(0, 262_144)));
    sessions.slice(1).forEach((session) => session.close());
  },

  async small_windows() {
    const session = await open({ initialWindowSize: 16_384 });
    session.setLocalWindowSize(65_536);
    const asked = Array.from({ length: 4 }, () => get(session, '/size/1000000'));
    for (const { body } of await Promise.all(asked)) assert.ok(body.equals(PATTERN.subarray(0, 1_000_000)));
    session.close();
  },

  async resets(session) {
    for (let count = 0; count < 200; count += 1) {
      const stream = session.request({ ':path': '/size/100000' });
      await new Promise((resolve) => {
        stream.on('ready', () => stream.close(http2.constants.NGHTTP2_CANCEL));
        stream.on('close', resolve);
        stream.resume();
      });
    }
    await assertServes(session);
  },

  async early_answers(session) {
    const stream = session.request({ ':method': 'POST', ':path': '/status/413' });
    stream.end(PATTERN);
    assert.equal((await answer(stream)).status, 413);
    await assertServes(session);
  },

  async broken_answers(session) {
    await assert.rejects(get(session, '/fails'), /INTERNAL_ERROR/);
    await assertServes(session);
  },

  async tunnels(session) {
    assert.ok(session.remoteSettings.enableConnectProtocol);
    const head = { ':method': 'CONNECT', ':protocol': 'websocket', ':scheme': 'https', ':path': '/chat' };
    const stream = session.request({ ...head, ':authority': new URL(url).host });
    await new Promise((resolve) => {
      stream.on('response', (headers) => resolve(assert.equal(headers[':status'], 200)));
    });
    const comes = stream[Symbol.asyncIterator]();
    for (let number = 1; number < 20; number += 1) {
      stream.write(PATTERN.subarray(0, number * 100));
      let back = Buffer.alloc(0);
      while (back.length < number * 100) back = Buffer.concat([back, (await comes.next()).value]);
      assert.ok(back.equals(PATTERN.subarray(0, number * 100)));
    }
    stream.end();
    assert.ok((await comes.next()).done);
  },
};

if (check === undefined) {
  console.log(Object.keys(checks).join('\n'));
} else {
  const session = await open();
  await checks[check](session);
  session.close();
}
