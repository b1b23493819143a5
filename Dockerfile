# The gateway on a machine of your own: docs/self-host.md. workerd needs glibc, so the base is Debian and not Alpine.
FROM node:24-bookworm-slim
WORKDIR /app
ENV HOST=0.0.0.0 PORT=8787 FANOUT_DATA=/data
COPY package.json package-lock.json .npmrc ./
RUN npm ci && npm cache clean --force
COPY wrangler.toml tsconfig.json ./
COPY scripts scripts
COPY src src
COPY durable-objects durable-objects
COPY stubs stubs
COPY ui ui
COPY bin bin
COPY cli cli
RUN node scripts/page/build.ts
# The gateway writes its compile cache, so that the compiler of its types need not stay in memory.
RUN mkdir -p /data node_modules/.cache && chown node:node /data node_modules/.cache
USER node
VOLUME /data
EXPOSE 8787
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT}/health`).then((reply) => process.exit(reply.ok ? 0 : 1), () => process.exit(1))"]
# Not through npm: node then receives the signal that stops the container, and drains.
CMD ["node", "scripts/lean.mjs", "serve.ts"]
