import java.io.BufferedOutputStream;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.File;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Base64;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.mapred.FileInputFormat;
import org.apache.hadoop.mapred.FileOutputCommitter;
import org.apache.hadoop.mapred.FileOutputFormat;
import org.apache.hadoop.mapred.InputFormat;
import org.apache.hadoop.mapred.InputSplit;
import org.apache.hadoop.mapred.JobConf;
import org.apache.hadoop.mapred.JobContext;
import org.apache.hadoop.mapred.JobContextImpl;
import org.apache.hadoop.mapred.JobID;
import org.apache.hadoop.mapred.JobStatus;
import org.apache.hadoop.mapred.OutputCommitter;
import org.apache.hadoop.mapred.OutputFormat;
import org.apache.hadoop.mapred.RecordReader;
import org.apache.hadoop.mapred.RecordWriter;
import org.apache.hadoop.mapred.Reporter;
import org.apache.hadoop.mapred.TaskAttemptContext;
import org.apache.hadoop.mapred.TaskAttemptContextImpl;
import org.apache.hadoop.mapred.TaskAttemptID;
import org.apache.hadoop.mapred.TaskID;
import org.apache.hadoop.mapreduce.TaskType;
import org.apache.hadoop.util.ReflectionUtils;

/**
 * Runs a user's InputFormat or OutputFormat of org.apache.hadoop.mapred for muster's agent, in the instance's own
 * confinement:
 *
 *   splits CLASS WANT PATH…   writes a line for each split: its class, a blank, its bytes in base64
 *   read CLASS                reads such lines, writes the text of each record and a newline
 *   write CLASS DIR           reads lines, has the class write them below DIR, and commits
 *
 * Stdin begins with the properties, which may be secret: a line for each, NAME=VALUE in base64, and an empty line.
 * Records and splits alone go to stdout. The last line of stderr that begins with "muster: " says why it has failed; it
 * ends with 65 if the words or the class are wrong, with 69 if data cannot be read or written, and with 70 if the class
 * fails otherwise, as it would again. One class without others inside, so that one file is all of it.
 */
public final class MusterFormats {
    private static final int WRONG = 65;
    private static final int FAILED = 69;
    private static final int BROKEN = 70;
    private static final int UNHEARD = 1;
    private static final int BUFFER = 64 << 10;
    private static final OutputStream OUT =
            new BufferedOutputStream(new FileOutputStream(FileDescriptor.out), BUFFER);
    /** Whether nobody reads what is written: then there is nothing to tell. */
    private static boolean unheard;

    private MusterFormats() {}

    public static void main(String[] words) {
        System.setOut(System.err); // what a user's class prints is no record
        int code;
        try {
            code = run(words);
        } catch (ClassNotFoundException e) {
            code = end(WRONG, "no class " + e.getMessage().replaceFirst("^Class (.*) not found$", "$1") + " in " + jars()
                    + " or Hadoop's CLASSPATH");
        } catch (LinkageError e) {
            code = end(WRONG, words[1] + " lacks a class that it needs, or was made for another Java: " + e
                    + "; there are " + jars() + " and Hadoop's CLASSPATH");
        } catch (InstantiationException e) {
            code = end(WRONG, e.getMessage());
        } catch (Throwable e) {
            if (!unheard) {
                e.printStackTrace();
            }
            code = unheard ? UNHEARD : end(ofData(e) ? FAILED : BROKEN, e.toString());
        }
        System.exit(code); // threads of Hadoop's clients must not keep it
    }

    /** Whether it is what a filesystem said, under whatever other name: Hadoop's own classes wrap it too. */
    private static boolean ofData(Throwable e) {
        while (e != null && !(e instanceof IOException)) {
            e = e.getCause();
        }
        return e != null;
    }

    private static int end(int code, String why) {
        System.err.println("muster: " + why.replace('\n', ' '));
        return code;
    }

    private static String jars() {
        String[] names = new File(".").list();
        if (names == null) {
            names = new String[0];
        }
        Arrays.sort(names);
        StringBuilder all = new StringBuilder();
        for (String name : names) {
            if (name.endsWith(".jar")) {
                all.append(all.length() == 0 ? "" : ", ").append(name);
            }
        }
        return all.length() == 0 ? "the folder of the process, which has no jar" : all.toString();
    }

    private static int run(String[] words) throws Exception {
        String mode = words[0];
        String name = words[1];
        JobConf conf = new JobConf();
        conf.setClassLoader(MusterFormats.class.getClassLoader());
        if (mode.equals("write")) { // as HBox, unless the properties say another thing
            conf.setBoolean("mapreduce.output.fileoutputformat.compress", true);
            conf.set("mapreduce.output.fileoutputformat.compress.codec", "org.apache.hadoop.io.compress.GzipCodec");
        }
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8), BUFFER);
        for (String line = in.readLine(); line != null && !line.isEmpty(); line = in.readLine()) {
            String[] pair = new String(Base64.getDecoder().decode(line), StandardCharsets.UTF_8).split("=", 2);
            conf.set(pair[0], pair[1]);
        }
        if (mode.equals("write")) {
            write(conf, format(conf, name, OutputFormat.class), words[2], in);
            return 0;
        }
        InputFormat<?, ?> format;
        conf.setBoolean("mapreduce.input.fileinputformat.input.dir.recursive", true);
        if (mode.equals("splits")) {
            Path[] paths = new Path[words.length - 3];
            for (int i = 0; i < paths.length; i++) {
                paths[i] = new Path(words[3 + i]);
            }
            FileInputFormat.setInputPaths(conf, paths);
            format = format(conf, name, InputFormat.class);
            splits(conf, format, Integer.parseInt(words[2]));
        } else {
            format = format(conf, name, InputFormat.class);
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                read(conf, format, line);
            }
        }
        return 0;
    }

    private static <T> T format(JobConf conf, String name, Class<T> kind) throws Exception {
        Class<?> found = conf.getClassByName(name);
        if (!kind.isAssignableFrom(found)) {
            throw new InstantiationException(name + " is no " + kind.getName() + ", the interface that HBox takes");
        }
        return kind.cast(ReflectionUtils.newInstance(found, conf));
    }

    private static void splits(JobConf conf, InputFormat<?, ?> format, int want) throws IOException {
        for (InputSplit split : format.getSplits(conf, want)) {
            ByteArrayOutputStream bytes = new ByteArrayOutputStream();
            split.write(new DataOutputStream(bytes));
            byte[] text = Base64.getEncoder().encode(bytes.toByteArray());
            say((split.getClass().getName() + " ").getBytes(StandardCharsets.UTF_8), -1);
            say(text, text.length);
        }
        flush();
    }

    private static void read(JobConf conf, InputFormat<?, ?> format, String line) throws Exception {
        String[] pair = line.split(" ", 2);
        InputSplit split = (InputSplit) ReflectionUtils.newInstance(conf.getClassByName(pair[0]), conf);
        split.readFields(new DataInputStream(new ByteArrayInputStream(Base64.getDecoder().decode(pair[1]))));
        records(format.getRecordReader(split, conf, Reporter.NULL));
        flush(); // the process need not wait for the next split
    }

    private static <K, V> void records(RecordReader<K, V> reader) throws IOException {
        try {
            K key = reader.createKey();
            V value = reader.createValue();
            while (reader.next(key, value)) {
                if (value instanceof Text) {
                    say(((Text) value).getBytes(), ((Text) value).getLength());
                } else {
                    byte[] text = String.valueOf(value).getBytes(StandardCharsets.UTF_8);
                    say(text, text.length);
                }
            }
        } finally {
            reader.close();
        }
    }

    /** Writes bytes and the end of the line; a length of -1 is all of them without an end. */
    private static void say(byte[] bytes, int length) throws IOException {
        unheard = true;
        OUT.write(bytes, 0, length < 0 ? bytes.length : length);
        if (length >= 0) {
            OUT.write('\n');
        }
        unheard = false;
    }

    private static void flush() throws IOException {
        unheard = true;
        OUT.flush();
        unheard = false;
    }

    private static void write(JobConf conf, OutputFormat<?, ?> format, String dir, BufferedReader in)
            throws Exception {
        JobID job = new JobID("muster", 0);
        TaskAttemptID attempt = new TaskAttemptID(new TaskID(job, TaskType.REDUCE, 0), 0);
        conf.set("mapreduce.job.id", job.toString());
        conf.set("mapreduce.task.id", attempt.getTaskID().toString());
        conf.set("mapreduce.task.attempt.id", attempt.toString());
        conf.setBoolean("mapreduce.task.ismap", false);
        conf.setInt("mapreduce.task.partition", 0);
        conf.setBoolean("mapreduce.fileoutputcommitter.marksuccessfuljobs", false); // the run makes its own
        conf.setOutputKeyClass(Text.class);
        conf.setOutputValueClass(Text.class);
        conf.setOutputFormat(format.getClass().asSubclass(OutputFormat.class));
        Path place = new Path(dir);
        FileOutputFormat.setOutputPath(conf, place);
        OutputCommitter committer = conf.getOutputCommitter();
        JobContext whole = new JobContextImpl(conf, job);
        TaskAttemptContext task = new TaskAttemptContextImpl(conf, attempt);
        try {
            committer.setupJob(whole);
            Path work = place;
            if (committer instanceof FileOutputCommitter) {
                work = ((FileOutputCommitter) committer).getWorkPath(task, place);
            }
            conf.set("mapreduce.task.output.dir", work.toString());
            committer.setupTask(task);
            lines(format.getRecordWriter(place.getFileSystem(conf), conf, "part-r", Reporter.NULL), in);
            if (committer.needsTaskCommit(task)) {
                committer.commitTask(task);
            }
            committer.commitJob(whole);
        } catch (Throwable e) {
            try {
                committer.abortTask(task);
                committer.abortJob(whole, JobStatus.FAILED);
            } catch (Exception also) {
                e.addSuppressed(also);
            }
            throw e;
        }
    }

    /** Gives each line to the class: as a String, as HBox does, or as a Text where the class takes no String. */
    @SuppressWarnings("unchecked")
    private static void lines(RecordWriter<?, ?> to, BufferedReader in) throws IOException {
        RecordWriter<Object, Object> writer = (RecordWriter<Object, Object>) to;
        boolean texts = false;
        boolean first = true;
        for (String line = in.readLine(); line != null; line = in.readLine(), first = false) {
            if (texts) {
                writer.write(null, new Text(line));
                continue;
            }
            try {
                writer.write(null, line);
            } catch (ClassCastException e) {
                if (!first) {
                    throw e;
                }
                texts = true;
                writer.write(null, new Text(line));
            }
        }
        writer.close(Reporter.NULL);
    }
}
