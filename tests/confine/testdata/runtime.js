// Worker threads, a child process and files, by node's own means.
const { Worker, isMainThread, parentPort } = require("worker_threads");
const { execFile } = require("child_process");
const fs = require("fs").promises;

if (!isMainThread) {
  parentPort.postMessage(42);
} else {
  new Worker(__filename).on("message", async (n) => {
    console.log("worker", n);
    await fs.writeFile("node.txt", "written");
    console.log("file", await fs.readFile("node.txt", "utf8"));
    execFile("echo", ["ran"], (err, out) => console.log("child", err || out.trim()));
  });
}
