import java.nio.channels.FileChannel;
import java.nio.file.*;
import java.util.concurrent.*;
import java.util.stream.*;

/** Threads, a child process, a map of a file and a collection of garbage, in the JVM that compiles this first. */
public class Runtime {
    public static void main(String[] args) throws Exception {
        System.out.println("streams " + IntStream.range(0, 1000).parallel().sum());
        ExecutorService pool = Executors.newFixedThreadPool(8);
        System.out.println("threads " + pool.submit(() -> 42).get());
        pool.shutdown();
        Process child = new ProcessBuilder("echo", "ran").start();
        System.out.println("child " + new String(child.getInputStream().readAllBytes()).trim());
        Path file = Files.createTempFile(Path.of("."), "map", "");
        try (FileChannel c = FileChannel.open(file, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
            c.map(FileChannel.MapMode.READ_WRITE, 0, 4096).put((byte) 1);
        }
        System.gc();
        System.out.println("map " + Files.size(file));
    }
}
